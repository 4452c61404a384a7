"""`python -m distrain_nb.backends.remote FOLDER`: carry the run of that folder to its end."""

from __future__ import annotations

import sys
from pathlib import Path

from distrain_nb.backends.remote.carrier import carry

carry(Path(sys.argv[1]))
