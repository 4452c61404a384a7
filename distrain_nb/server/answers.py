"""Answers to pages that read."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb import __version__
from distrain_nb.config import fingerprint
from distrain_nb.run import Store
from distrain_nb.run.pages.answers import answer
from distrain_nb.saved.ending import study_ending
from distrain_nb.server import table
from distrain_nb.server.access import check_home, run_of, study_of
from distrain_nb.study.answers import answer as answer_study
from distrain_nb.study.importances import Importances
from distrain_nb.worker.machine import system
from distrain_nb.worker.supervisor.heartbeat import note_drawn, note_watched

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.run.pages.query import Query
    from distrain_nb.study import Study


def version(store: Store, _: Query) -> Answer:
    return {"version": __version__, "home": fingerprint(store.folder)}


def list_answer(store: Store, query: Query, name: str) -> Answer:
    check_home(store, query.get("home", ""))
    return table.LISTS[name](store, query)


def run_answer(store: Store, query: Query, number: str, path: str) -> Answer:
    run = run_of(store, query, number)
    if "watching" in query:
        _note_watched(run.folder)
    if query.get("watching") == "charts":
        note_drawn(run.folder)
    return answer(run, path, query)


def study_answer(store: Store, query: Query, number: str) -> Answer:
    study = study_of(store, query, number)
    if "watching" in query:
        _note_watched(study.folder)
    return answer_study(study, _importances(study), query)


def ending_of_study(store: Store, query: Query, number: str) -> Answer:
    study = study_of(store, query, number)
    return study_ending(study, _importances(study))


def _note_watched(folder: Path) -> None:
    """Note that a page shows this run or study, so that it stays smooth beside busy ranks."""
    note_watched(folder)
    system.weigh_session_more()


@lru_cache(maxsize=16)  # they take long to compute, and a page asks every few seconds
def _importances(study: Study) -> Importances:  # noqa: ARG001
    return Importances()
