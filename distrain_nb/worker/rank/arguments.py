"""Arguments that a service or a study adds to those of the program, such as a trial's."""

from __future__ import annotations

import json
import os
from typing import Any, List

# The added arguments as a JSON list of texts, such as `--lr=0.01`. They are in a variable, so that
# processes that the program spawns have them too.
ARGUMENTS_VARIABLE = "DISTRAIN_ARGUMENTS"


def added_arguments() -> List[str]:
    """Return the added arguments of this job."""
    return [str(word) for word in json.loads(os.environ.get(ARGUMENTS_VARIABLE) or "[]")]


def set_arguments(module: Any, words: List[str]) -> None:
    """Set `sys.argv` to the notebook's arguments and the added ones."""
    module.argv = [*words, *added_arguments()]
