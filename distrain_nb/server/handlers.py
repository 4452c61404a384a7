"""The addresses below `distrain/`, each behind the user's Jupyter token.

Whatever touches the disk does so in a thread: the server's loop never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from distrain_nb import __version__
from distrain_nb.errors import (
    OptionError,
    RunNotFound,
    RunNotReady,
    RunUnreadable,
    StoreError,
    StudyNotFound,
)
from distrain_nb.run import Run, Store
from distrain_nb.run.metrics.finite import to_json
from distrain_nb.run.pages.answers import answer
from distrain_nb.server import table
from distrain_nb.server.access import check_home, fingerprint, open_run, open_study
from distrain_nb.server.download import log_text
from distrain_nb.study.answers import ACTIONS, act, ending
from distrain_nb.study.answers import answer as answer_study
from distrain_nb.study.importances import Importances
from distrain_nb.study.rows import row_of
from distrain_nb.worker.supervisor.heartbeat import note_watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.study import Study


_log = logging.getLogger(__name__)


class _Handler(APIHandler):
    """The shared part of all addresses."""

    auth_resource = "distrain"
    _track_activity = False  # a page that only watches keeps no idle server alive

    async def in_thread(self, work: Callable[..., Any], *values: Any) -> Any:
        """Return the result of `work`. Errors that a user can mend become 404, 409, 400 or 503."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work, *values)
        except (RunNotFound, StudyNotFound, RunUnreadable, FileNotFoundError) as error:
            raise web.HTTPError(404, str(error)) from None
        except RunNotReady as error:
            raise web.HTTPError(409, str(error)) from None
        except StoreError as error:
            _log.warning("%s", error)
            raise web.HTTPError(503, str(error)) from None
        except OptionError as error:
            raise web.HTTPError(400, str(error)) from None

    def answer_json(self, value: Any) -> None:
        """Answer with the value as JSON that every page can read."""
        self.finish(to_json(value).replace("</", "<\\/"))

    def query(self) -> dict[str, str]:
        return {name: self.get_query_argument(name) for name in self.request.query_arguments}

    async def run(self, number: str) -> Run:
        run: Run = await self.in_thread(
            open_run, Store(), number, self.get_query_argument("home", "")
        )
        return run

    async def study(self, number: str) -> Study:
        study: Study = await self.in_thread(
            open_study, Store(), number, self.get_query_argument("home", "")
        )
        return study


class VersionHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.answer_json({"version": __version__, "home": fingerprint(Store().folder)})


class RunsHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with an ETag that changes with the runs: a second request gets 304 or news."""
        store = Store()
        await self.in_thread(check_home, store, self.get_query_argument("home", ""))
        self.answer_json(await self.in_thread(table.rows, store))


class CompareHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        store, numbers = Store(), self.get_query_argument("runs", "")
        await self.in_thread(check_home, store, self.get_query_argument("home", ""))
        self.answer_json(await self.in_thread(table.side_by_side, store, numbers))


class CurvesHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        store, query = Store(), self.query()
        await self.in_thread(check_home, store, query.get("home", ""))
        self.answer_json(await self.in_thread(table.curves, store, query.get("runs", ""), query))


class RunHandler(_Handler):
    @web.authenticated
    @authorized
    async def delete(self, number: str) -> None:
        """Delete it; answer 409 while it is alive."""
        if not await self.in_thread(table.delete, Store(), await self.run(number)):
            raise web.HTTPError(409, f"run {number} has not ended: cancel it first")
        _log.info("run %s is deleted", number)
        self.set_status(204)
        self.finish()


class CancelHandler(_Handler):
    @web.authenticated
    @authorized
    async def post(self, number: str) -> None:
        """Answer 202 with the state at that time: the run ends a little later."""
        run = await self.run(number)
        await self.in_thread(run.cancel)
        _log.info("run %s is to stop", number)
        self.set_status(202)
        self.answer_json({"state": str(await self.in_thread(lambda: run.state))})


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


class AnswerHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self, number: str, path: str) -> None:
        query = self.query()
        run = await self.run(number)
        if "watching" in query:
            await self.in_thread(note_watched, run.folder)
        self.answer_json(await self.in_thread(answer, run, path, query))


class StudiesHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self) -> None:
        store = Store()
        await self.in_thread(check_home, store, self.get_query_argument("home", ""))
        self.answer_json(await self.in_thread(table.studies, store))


class StudyHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self, number: str) -> None:
        study, query = await self.study(number), self.query()
        if "watching" in query:
            await self.in_thread(note_watched, study.folder)
        self.answer_json(await self.in_thread(answer_study, study, _importances(study), query))


class StudyRowHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self, number: str) -> None:
        row = await self.in_thread(row_of, await self.study(number))
        self.answer_json(row.as_json())


class StudyEndingHandler(_Handler):
    @web.authenticated
    @authorized
    async def get(self, number: str) -> None:
        self.answer_json(await self.in_thread(ending, await self.study(number)))


class StudyActionHandler(_Handler):
    @web.authenticated
    @authorized
    async def post(self, number: str, action: str) -> None:
        """Answer 202: the request is carried out a little later."""
        study, query = await self.study(number), self.query()
        await self.in_thread(act, study, action, query)
        _log.info("study %s: %s %s", number, action, query.get("trial", query.get("trials", "")))
        self.set_status(202)
        self.answer_json({})


@lru_cache(maxsize=16)
def _importances(study: Study) -> Importances:  # noqa: ARG001
    return Importances()


def routes(base_url: str) -> list[tuple[str, type[_Handler]]]:
    """Return the handlers, by their addresses below the server's base URL."""
    return [
        (url_path_join(base_url, "distrain", address), handler)
        for address, handler in (
            ("version", VersionHandler),
            ("runs", RunsHandler),
            ("compare", CompareHandler),
            ("curves", CurvesHandler),
            ("studies", StudiesHandler),
            ("studies/([^/]+)/study", StudyHandler),
            ("studies/([^/]+)/row", StudyRowHandler),
            ("studies/([^/]+)/ending", StudyEndingHandler),
            (f"studies/([^/]+)/({'|'.join(ACTIONS)})", StudyActionHandler),
            ("runs/([^/]+)", RunHandler),
            ("runs/([^/]+)/cancel", CancelHandler),
            ("runs/([^/]+)/download", DownloadHandler),
            ("runs/([^/]+)/([^/]+)", AnswerHandler),
        )
    ]
