"""Changes that pages ask for: Stop, notes and tags, actions on a study."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from distrain_nb.run import Store, annotation
from distrain_nb.server.access import open_session, run_of, study_of
from distrain_nb.study.answers import apply_action

if TYPE_CHECKING:
    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.run.pages.query import Query

_log = logging.getLogger(__name__)


def cancel(store: Store, query: Query, number: str) -> Answer:
    """Stop a run. Answer with its present state: it ends a little later."""
    run = run_of(store, query, number)
    run.cancel()
    _log.info("run %s is to stop", number)
    return {"state": str(run.state)}


def stop_session(store: Store, query: Query, name: str) -> Answer:
    """Stop a session. Answer when it has ended."""
    open_session(store, name, query.get("home", "")).stop()
    _log.info("session %s has ended", name)
    return {}


def change_annotation(store: Store, query: Query, number: str) -> Answer:
    """Change note and tags of a run. Answer with both as they are stored."""
    return annotation.annotate(run_of(store, query, number).folder, query).as_json()


def act_on_study(store: Store, query: Query, number: str, action: str) -> Answer:
    apply_action(study_of(store, query, number), action, query)
    _log.info("study %s: %s %s", number, action, query.get("trial", query.get("trials", "")))
    return {}
