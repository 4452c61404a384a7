"""What the widgets below a run share: their modules, plotly's code, and answers to the page."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from distrain_nb.errors import OptionError, RunNotFound
from distrain_nb.run.answers import answer
from distrain_nb.run.run import Run
from distrain_nb.run.store import Store

STATIC = Path(__file__).parent / "static"


def module(*parts: str) -> str:
    """The files as one: what a part names stands in one before it."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in parts)


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


def answers(widget: Any, folder: Path) -> None:
    """Let the kernel answer what the page asks about the run of this folder."""

    def asked(_: Any, message: dict[str, Any], __: Any) -> None:
        if message.get("kind") == "ask":
            widget.send({"kind": "answer", "id": message["id"], **_answered(folder, message)})

    widget.on_msg(asked)


def _answered(folder: Path, message: dict[str, Any]) -> dict[str, Any]:
    try:
        run = Run(Store(folder.parents[1]).get(folder.name))
        query = {name: str(value) for name, value in message.get("query", {}).items()}
        return {"body": answer(run, str(message.get("path")), query)}
    except (OptionError, RunNotFound) as error:
        return {"error": str(error)}
