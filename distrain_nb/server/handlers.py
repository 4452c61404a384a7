"""The addresses below `distrain/`, each behind the user's Jupyter token.

Whatever touches the disk does so in a thread: the server's loop never waits for it.

A run's log as a text file, a piece at a time.
"""

from __future__ import annotations

import asyncio
import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from distrain_nb import __version__
from distrain_nb.config import fingerprint
from distrain_nb.errors import (
    OptionError,
    RunNotFound,
    RunNotReady,
    RunUnreadable,
    StoreError,
    StudyNotFound,
)
from distrain_nb.run import Run, Store
from distrain_nb.run.annotation import annotate
from distrain_nb.run.log.index import Filter
from distrain_nb.run.log.reader import pieces
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.run import delete
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import labels_of
from distrain_nb.saved.ending import run_ending, study_ending
from distrain_nb.server import table
from distrain_nb.server.access import check_home, open_run, open_session, open_study
from distrain_nb.study.answers import ACTIONS, apply_action
from distrain_nb.study.answers import answer as answer_study
from distrain_nb.study.importances import Importances
from distrain_nb.study.summary import row_of
from distrain_nb.worker.machine import system
from distrain_nb.worker.supervisor.heartbeat import note_watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from distrain_nb.run.pages.protocol import Answer
    from distrain_nb.run.pages.query import Query
    from distrain_nb.study import Study

# What stands before a text; of a record that a later one takes the place of, all of it.
_HEAD = re.compile(rb"^[^\t\n]*\t(\d+)\t(?:[oe]\t|[OE]\t.*\n)", re.MULTILINE)


def log_text(run: Run) -> Iterator[bytes]:
    """Yield all lines with their processes, a MiB at a time; bars as they were left, at the end."""
    labels = labels_of(run.status)
    log = streams(run.folder).log
    log.update()

    def tag(process: int) -> bytes:
        return f"[{labels.get(process, process)}] ".encode()

    def head(record: re.Match[bytes]) -> bytes:
        return b"" if record[0].endswith(b"\n") else tag(int(record[1]))

    with log.open() as file:
        for _, piece in pieces(file, 0, log.end):
            yield _HEAD.sub(head, piece)
    for _, bar in log.bars(Filter()):
        yield tag(bar.process) + bar.text.encode() + b"\n"


_log = logging.getLogger(__name__)


class _Handler(APIHandler):
    """The shared part of all addresses."""

    auth_resource = "distrain"
    _track_activity = False  # a page that only watches keeps no idle server alive

    async def in_thread(self, work: Callable[..., Any], *values: Any) -> Any:
        """Return the result of `work`. Errors that a user can mend become 404, 409, 400 or 503.

        What can't be changed is 409: a page takes 503 for a server that is away.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work, *values)
        except (RunNotFound, StudyNotFound, RunUnreadable, FileNotFoundError) as error:
            raise web.HTTPError(404, str(error)) from None
        except RunNotReady as error:
            raise web.HTTPError(409, str(error)) from None
        except StoreError as error:
            _log.warning("%s", error)
            reads = self.request.method == "GET"
            raise web.HTTPError(503 if reads else 409, str(error)) from None
        except OptionError as error:
            raise web.HTTPError(400, str(error)) from None

    def answer_json(self, value: Any) -> None:
        """Answer with the value as JSON that every page can read."""
        self.finish(to_json(value).replace("</", "<\\/"))

    def query(self) -> dict[str, str]:
        return {name: self.get_query_argument(name) for name in self.request.query_arguments}

    async def run(self, number: str) -> Run:
        run: Run = await self.in_thread(_run, Store(), self.query(), number)
        return run


def _reads(answer: Callable[..., object]) -> type[_Handler]:
    """Return the handler of a GET, whose JSON `answer` makes of the store, the query and what the
    address has."""

    class Reads(_Handler):
        @web.authenticated
        @authorized
        async def get(self, *parts: str) -> None:
            self.answer_json(await self.in_thread(answer, Store(), self.query(), *parts))

    return Reads


def _acts(act: Callable[..., object]) -> type[_Handler]:
    """Return the handler of a POST, answered with 202: the request is carried out a little
    later."""

    class Acts(_Handler):
        @web.authenticated
        @authorized
        async def post(self, *parts: str) -> None:
            answer = await self.in_thread(act, Store(), self.query(), *parts)
            self.set_status(202)
            self.answer_json(answer)

    return Acts


class RunHandler(_Handler):
    @web.authenticated
    @authorized
    async def delete(self, number: str) -> None:
        """Delete it; answer 409 while it is alive."""
        await self.in_thread(delete, await self.run(number))
        _log.info("run %s is deleted", number)
        self.set_status(204)
        self.finish()


class DownloadHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self, number: str) -> None:
        pieces = await self.in_thread(log_text, await self.run(number))
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="run-{number}.log"')
        while (piece := await self.in_thread(next, pieces, None)) is not None:
            self.write(piece)
            await self.flush()
        self.finish(set_content_type="text/plain; charset=utf-8")


def _version(store: Store, _: Query) -> Answer:
    return {"version": __version__, "home": fingerprint(store.folder)}


def _run(store: Store, query: Query, number: str) -> Run:
    return open_run(store, number, query.get("home", ""))


def _study(store: Store, query: Query, number: str) -> Study:
    return open_study(store, number, query.get("home", ""))


def _list(store: Store, query: Query, name: str) -> Answer:
    check_home(store, query.get("home", ""))
    return table.LISTS[name](store, query)


def _note_watched(folder: Path) -> None:
    """Note that a page looks, which is to stay smooth beside ranks that take all CPUs."""
    note_watched(folder)
    system.weigh_session_more()


def _answer(store: Store, query: Query, number: str, path: str) -> Answer:
    run = _run(store, query, number)
    if "watching" in query:
        _note_watched(run.folder)
    return answer(run, path, query)


def _answer_study(store: Store, query: Query, number: str) -> Answer:
    study = _study(store, query, number)
    if "watching" in query:
        _note_watched(study.folder)
    return answer_study(study, _importances(study), query)


def _end_study(store: Store, query: Query, number: str) -> Answer:
    study = _study(store, query, number)
    return study_ending(study, _importances(study))


def _cancel(store: Store, query: Query, number: str) -> Answer:
    """Answer with the state at that time: the run ends a little later."""
    run = _run(store, query, number)
    run.cancel()
    _log.info("run %s is to stop", number)
    return {"state": str(run.state)}


def _stop_session(store: Store, query: Query, name: str) -> Answer:
    """Answer when it has ended."""
    open_session(store, name, query.get("home", "")).stop()
    _log.info("session %s has ended", name)
    return {}


def _annotate(store: Store, query: Query, number: str) -> Answer:
    """Answer with note and tags as they are kept."""
    return annotate(_run(store, query, number).folder, query).as_json()


def _act_on_study(store: Store, query: Query, number: str, action: str) -> Answer:
    apply_action(_study(store, query, number), action, query)
    _log.info("study %s: %s %s", number, action, query.get("trial", query.get("trials", "")))
    return {}


@lru_cache(maxsize=16)
def _importances(study: Study) -> Importances:  # noqa: ARG001
    return Importances()


def routes(base_url: str) -> list[tuple[str, type[_Handler]]]:
    """Return the handlers, by their addresses below the server's base URL."""
    return [
        (url_path_join(base_url, "distrain", address), handler)
        for address, handler in (
            ("version", _reads(_version)),
            (f"({'|'.join(table.LISTS)})", _reads(_list)),
            ("studies/([^/]+)/study", _reads(_answer_study)),
            ("studies/([^/]+)/ending", _reads(_end_study)),
            ("studies/([^/]+)/row", _reads(lambda *asked: row_of(_study(*asked)).as_json())),
            (f"studies/([^/]+)/({'|'.join(ACTIONS)})", _acts(_act_on_study)),
            ("sessions/([^/]+)/stop", _acts(_stop_session)),
            ("runs/([^/]+)", RunHandler),
            ("runs/([^/]+)/cancel", _acts(_cancel)),
            ("runs/([^/]+)/annotate", _acts(_annotate)),
            ("runs/([^/]+)/download", DownloadHandler),
            ("runs/([^/]+)/ending", _reads(lambda *asked: run_ending(_run(*asked)))),
            ("runs/([^/]+)/([^/]+)", _reads(_answer)),
        )
    ]
