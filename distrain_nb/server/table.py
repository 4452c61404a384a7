"""What a table of runs asks, by HTTP or through the kernel: the runs, and some side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from distrain_nb.run.compare import compare, differences
from distrain_nb.run.listing import Listing
from distrain_nb.server.doors import open_run, own_runs

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.run import Run, Store

MOST_COMPARED = 20


def rows(store: Store) -> dict[str, Any]:
    """The runs, the newest first; see `Summary.as_row`. Asked again, it reads only what is new."""
    return {"runs": [each.as_row() for each in _listing(store.folder).there(own_runs(store))]}


def side_by_side(store: Store, numbers: str) -> dict[str, Any]:
    """By what the runs of these numbers, as in `3,5`, differ: `[name, value of each, …]`.

    Raises OptionError for fewer than two, RunNotFound.
    """
    chosen = numbers.split(",")[:MOST_COMPARED]
    compared = compare(open_run(store, number) for number in filter(None, chosen))
    return {"titles": compared.titles, "rows": differences(compared)}


def delete(store: Store, run: Run) -> bool:
    """Whether it has ended, and so is deleted."""
    if not run.state.final:
        return False
    store.delete(run.record)
    return True


@lru_cache(maxsize=4)
def _listing(folder: Path) -> Listing:  # noqa: ARG001
    """What is known of the runs below a folder, from one question to the next."""
    return Listing()
