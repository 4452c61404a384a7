"""Handlers of a run that answer without JSON: its deletion, and its log as a file."""

from __future__ import annotations

import logging

from jupyter_server.auth.decorator import authorized
from tornado import web

from distrain_nb.run import Run, Store
from distrain_nb.run.run import delete
from distrain_nb.server.access import run_of
from distrain_nb.server.handler import PageHandler
from distrain_nb.server.log_text import log_text

_log = logging.getLogger(__name__)


class _OfRun(PageHandler):
    async def run(self, number: str) -> Run:
        run: Run = await self.in_thread(run_of, Store(), self.query(), number)
        return run


class RunHandler(_OfRun):
    @web.authenticated
    @authorized
    async def delete(self, number: str) -> None:
        """Delete the run. Answer 409 while it is alive."""
        await self.in_thread(delete, await self.run(number))
        _log.info("run %s is deleted", number)
        self.set_status(204)
        self.finish()


class DownloadHandler(_OfRun):
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
