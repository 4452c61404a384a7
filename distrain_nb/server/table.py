"""Answers to a table of runs, by HTTP or through the kernel: the list, and comparisons."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb.run.charts.lines import line_name
from distrain_nb.run.pages import compared_rows
from distrain_nb.run.pages.compare import check_count, compare
from distrain_nb.run.pages.curves import curves as curves_of
from distrain_nb.run.pages.drawn_charts import overlay
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.overlay import title
from distrain_nb.run.pages.sessions import session_rows
from distrain_nb.run.streams import streams
from distrain_nb.server.access import open_run, own_runs, own_sessions, own_studies
from distrain_nb.study.rows import StudyListing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distrain_nb.run import Run, Store
    from distrain_nb.run.pages.protocol import Answer, CurvesAnswer
    from distrain_nb.run.pages.query import Query


def rows(store: Store, _: object = None) -> Answer:
    """Return the runs, the newest first; see `RunRow.as_json`.

    A further call reads only what is new.
    """
    return {"runs": [row.as_json() for row in _listing(store.folder).read(own_runs(store))]}


def studies(store: Store, _: Query) -> Answer:
    """Return the studies, the newest first; see `StudyRow`."""
    listed = _studies(store.folder).read(own_studies(store))
    return {"studies": [row.as_json() for row in listed]}


def sessions(store: Store, _: Query) -> Answer:
    """Return the sessions, the newest first; see `SessionRow`."""
    return {"sessions": [row.as_json() for row in session_rows(own_sessions(store))]}


def compared_runs(store: Store, query: Query) -> Answer:
    """Return the `runs` of these numbers, such as `3,5`, and their differences; see `ComparedRow`.

    Raises OptionError for fewer than two, and RunNotFound.
    """
    compared = compare(chosen_runs(store, query), _listing(store.folder))
    return {
        "titles": compared.titles,
        "runs": [summary.as_json() for summary in compared.summaries],
        "rows": [row.as_json() for row in compared_rows.rows(compared)],
        "diff": compared.diff,
    }


def curves(store: Store, query: Query) -> CurvesAnswer:
    """Return the metrics of the `runs` of these numbers.

    Names of lines have the runs' titles.

    For the rest of the query see `run.curves`. Raises OptionError, RunNotFound.
    """
    curves_answer: CurvesAnswer = {"lines": [], "notes": []}
    for run in chosen_runs(store, query):
        answered = curves_of(streams(run.folder).metrics, query)
        for line in answered["lines"]:
            line["run"] = line_name(title(run), line["run"])
        curves_answer["lines"] += answered["lines"]
        curves_answer["notes"] += answered["notes"]
    return curves_answer


def chosen_runs(store: Store, query: Query) -> list[Run]:
    """Return the `runs` of these numbers, such as `3,5`.

    Raises OptionError for too many, RunNotFound.
    """
    ids = [part for part in query.get("runs", "").split(",") if part]
    if len(ids) > 1:
        check_count(len(ids))
    return [open_run(store, run_id) for run_id in ids]


@lru_cache(maxsize=4)
def _studies(folder: Path) -> StudyListing:  # noqa: ARG001
    return StudyListing()


@lru_cache(maxsize=4)
def _listing(folder: Path) -> Listing:  # noqa: ARG001
    """Return the list of the runs below a folder, kept from one question to the next."""
    return Listing()


# What a page asks of all runs and studies, by its address.
LISTS: dict[str, Callable[[Store, Query], Answer]] = {
    "runs": rows, "studies": studies, "sessions": sessions, "compare": compared_runs,
    "curves": curves,
    "overlay": lambda store, query: overlay(chosen_runs(store, query), query),
}  # fmt: skip
