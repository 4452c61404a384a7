"""`python -m distrain_nb.places.local.warming FOLDER PID STARTED MODULE…`: warm up for a kernel.

A process of its own, so that the kernel does nothing but start it; FOLDER is the kernel's.
"""

from __future__ import annotations

import os
import sys

from distrain_nb.config import Config
from distrain_nb.places.local.warm import prepare
from distrain_nb.worker.files.request import Warming
from distrain_nb.worker.machine.memory import available

# What importing the frameworks takes, several times over.
ENOUGH_BYTES = 2 << 30


def warm(warming: Warming) -> None:
    """Have the fork server of this environment ready, unless memory is short or it is not wanted.

    Raises OptionError and StoreError where the settings can't be read, DistrainError where no
    server can be started: the run to come says the same.
    """
    config = Config.load()
    if config.warm and available() >= ENOUGH_BYTES:
        prepare(warming, config.idle)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    warm(Warming.of(sys.argv[2:]))
