"""The main module of processes that a program spawns: what it defines, without what it does."""

import os
from pathlib import Path

from distrain_nb.worker.program import FOLDER_VARIABLE, define

define(Path(os.environ[FOLDER_VARIABLE]), globals())
