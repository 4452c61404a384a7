"""The variables of this process, copied while other threads set and delete some."""

from __future__ import annotations

import os
from typing import Dict


def variables() -> Dict[str, str]:
    """Return a copy of `os.environ`.

    `dict(os.environ)` lists the names, then looks each up: it ends with a KeyError where a thread
    deletes one in between, as MLflow 3's telemetry does while it is imported.
    """
    copy = {}
    for name in [*os.environ]:
        value = os.environ.get(name)
        if value is not None:
            copy[name] = value
    return copy
