"""The addresses below `distrain/`, with their handlers."""

from __future__ import annotations

from jupyter_server.utils import url_path_join

from distrain_nb.saved.ending import run_ending
from distrain_nb.server import table
from distrain_nb.server.access import run_of, study_of
from distrain_nb.server.actions import act_on_study, cancel, change_annotation, stop_session
from distrain_nb.server.answers import (
    ending_of_study,
    list_answer,
    run_answer,
    study_answer,
    version,
)
from distrain_nb.server.handler import PageHandler, acts, reads
from distrain_nb.server.run_handlers import DownloadHandler, RunHandler
from distrain_nb.study.answers import ACTIONS
from distrain_nb.study.rows import row_of


def routes(base_url: str) -> list[tuple[str, type[PageHandler]]]:
    """Return pairs of an address below the server's base URL and its handler."""
    return [
        (url_path_join(base_url, "distrain", address), handler)
        for address, handler in (
            ("version", reads(version)),
            (f"({'|'.join(table.LISTS)})", reads(list_answer)),
            ("studies/([^/]+)/study", reads(study_answer)),
            ("studies/([^/]+)/ending", reads(ending_of_study)),
            ("studies/([^/]+)/row", reads(lambda *asked: row_of(study_of(*asked)).as_json())),
            (f"studies/([^/]+)/({'|'.join(ACTIONS)})", acts(act_on_study)),
            ("sessions/([^/]+)/stop", acts(stop_session)),
            ("runs/([^/]+)", RunHandler),
            ("runs/([^/]+)/cancel", acts(cancel)),
            ("runs/([^/]+)/annotate", acts(change_annotation)),
            ("runs/([^/]+)/download", DownloadHandler),
            ("runs/([^/]+)/ending", reads(lambda *asked: run_ending(run_of(*asked)))),
            ("runs/([^/]+)/([^/]+)", reads(run_answer)),
        )
    ]
