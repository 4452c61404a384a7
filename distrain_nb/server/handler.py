"""The handlers of requests. All need the user's Jupyter token.

Work that touches the disk is done in a thread, so that the server's loop never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from distrain_nb.errors import (
    OptionError,
    RunNotFound,
    RunNotReady,
    RunUnreadable,
    StoreError,
    StudyNotFound,
)
from distrain_nb.run import Store
from distrain_nb.run.metrics.finite import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)


class PageHandler(APIHandler):
    """The base of all handlers."""

    auth_resource = "distrain"
    _track_activity = False  # a page that only watches keeps no idle server alive

    async def in_thread(self, work: Callable[..., Any], *values: Any) -> Any:
        """Return the result of *work*. Errors that a user can mend become 404, 409, 400 or 503.

        A change that fails is 409: a page takes 503 for a server that is away.
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
        """Answer with JSON. No text in it can end a script element of a page."""
        self.finish(to_json(value).replace("</", "<\\/"))

    def query(self) -> dict[str, str]:
        return {name: self.get_query_argument(name) for name in self.request.query_arguments}


def reads(answer: Callable[..., object]) -> type[PageHandler]:
    """Return the handler of a GET. *answer* makes its JSON.

    The arguments of *answer* are the store, the query and the variable parts of the address.
    """

    class Reads(PageHandler):
        @web.authenticated
        @authorized
        async def get(self, *parts: str) -> None:
            self.answer_json(await self.in_thread(answer, Store(), self.query(), *parts))

    return Reads


def acts(act: Callable[..., object]) -> type[PageHandler]:
    """Return the handler of a POST, with the arguments of `reads` for *act*.

    Its answer is 202: a run or a study may obey a little later.
    """

    class Acts(PageHandler):
        @web.authenticated
        @authorized
        async def post(self, *parts: str) -> None:
            answer = await self.in_thread(act, Store(), self.query(), *parts)
            self.set_status(202)
            self.answer_json(answer)

    return Acts
