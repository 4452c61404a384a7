"""The shared parts of the widgets: their modules and styles, plotly's code, and answers to the
page."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from distrain_nb.config import fingerprint
from distrain_nb.errors import DistrainError
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.run import Run
from distrain_nb.run.store import Store

STATIC = Path(__file__).parent / "static"  # its modules and styles are made from page/
Answer = Callable[[str, dict[str, str]], Mapping[str, object]]  # of a path and a query


class Widget(anywidget.AnyWidget):
    """A widget whose messages are read by the thread that the page sends them to."""

    def open(self) -> None:
        """Open the comm. Leave out the route of ipykernel 7.4: it takes messages to the thread that
        last published on this comm, which may have ended, or run a cell."""
        super().open()
        getattr(self.comm, "__dict__", {})["_reply_subshell_for"] = None


class LiveWidget(Widget):
    """A view that a page keeps current.

    `home` names the runs' folder to a server that may know it, `key` tells this view from others.
    """

    home = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)

    def __init__(self, folder: Path, **state: Any) -> None:
        """*folder* is that of all runs."""
        super().__init__(home=fingerprint(folder), key=uuid4().hex, **state)


def mark(widget: Any) -> str:
    """Return where a widget may stand in a document, as long as the page has it."""
    return f'<i hidden data-distrain-live="{widget.key}"></i>' if widget else ""


class PlotlyCode(anywidget.AnyWidget):
    """plotly.js for the page, as gzip packs it: all charts of a kernel share one.

    The Python package's own copy has all kinds of charts, and takes a page four times as long.
    """

    _esm = "export default {};"

    code = traitlets.Bytes().tag(sync=True)


@lru_cache(maxsize=1)
def plotly() -> PlotlyCode:
    code = (STATIC / "plotly" / "plotly-basic.min.js").read_bytes()
    return PlotlyCode(code=gzip.compress(code, compresslevel=1))


def answers(widget: Any, answer: Answer, hear: Callable[[str], None] = lambda _: None) -> None:
    """Let the kernel answer what the page asks of this widget.

    `hear` gets the kind of every message.
    """

    def on_message(_: Any, message: dict[str, Any], __: Any) -> None:
        hear(str(message.get("kind")))
        if message.get("kind") == "ask":
            query = {name: str(value) for name, value in message.get("query", {}).items()}
            reply = _reply(answer, str(message.get("path")), query)
            widget.send({"kind": "answer", "id": message["id"], **reply})

    widget.on_msg(on_message)


def about_run(folder: Path) -> Answer:
    """Return the function that answers a page's questions about the run of this folder."""

    def answered(path: str, query: dict[str, str]) -> Mapping[str, object]:
        return answer(Run(Store(folder.parents[1]).get(folder.name)), path, query)

    return answered


def _reply(answer: Answer, path: str, query: dict[str, str]) -> dict[str, Any]:
    try:
        return {"body": answer(path, query)}
    except (DistrainError, FileNotFoundError) as error:
        return {"error": str(error)}
