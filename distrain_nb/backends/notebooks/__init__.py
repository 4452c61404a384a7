"""Where the notebook runs: what its machine tells of itself, for all who ask.

Nothing here slows a machine that is in no such place: a service is asked only where a file or a
variable says that there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb import installed
from distrain_nb.backends.notebooks import hosted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.backends.notebooks.place import NotebookPlace

GROUP = "distrain_nb.notebooks"


def place(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Return the managed notebook that this is; None elsewhere."""
    looks = (hosted.place, *installed.loaded(GROUP))
    return next(filter(None, (look(environ) for look in looks)), None)
