"""Outputs of the running cell that are replaced later, also where a document only adds to them.

jupyter-server-documents 0.3 appends updates of a display. There the cell's output is cleared and
all of ours is displayed anew, as long as the cell has no other output that would be lost.
"""

from __future__ import annotations

import contextvars
import html
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from distrain_nb.errors import RunUnreadable
from distrain_nb.escapes import coloured, plain
from distrain_nb.ui.frontend import Frontend, frontend, running_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.display import DisplayHandle

Bundle = dict[str, Any]  # what is displayed, by MIME type
OWN_CELL, OWN_LINE = "%%distrain", "%distrain"
REPLACED_EVERY_S, REDRAWN_EVERY_S = 0.1, 1.0
_WORDS = (
    '<pre class="distrain-words" style="white-space: pre-wrap; word-break: normal; '
    'overflow-wrap: anywhere; margin: 0">{}</pre>'
)


class CellOutput(ABC):
    """One output of the cell that is running."""

    @abstractmethod
    def replace(self, bundle: Bundle) -> None:
        """Show this instead."""


def show(bundle: Bundle) -> CellOutput:
    """Display something that may be replaced."""
    bundle = _shown(bundle)
    return _Redrawn(bundle) if frontend() is Frontend.SERVER else _Updated(bundle)


def replace_all(*changes: tuple[CellOutput, Bundle]) -> None:
    """Replace several outputs at once, in this order."""
    changes = tuple((output, _shown(bundle)) for output, bundle in changes)
    redrawn = [output for output, _ in changes if isinstance(output, _Redrawn)]
    for output, bundle in changes:
        if isinstance(output, _Redrawn):
            output.bundle = bundle
        else:
            output.replace(bundle)
    if redrawn:
        _redraw(redrawn)


def say(text: str) -> None:
    """Print a text that stays when outputs are replaced. A page breaks its lines between words:
    JupyterLab breaks those of printed text in the middle of one."""
    if frontend().has_widgets:
        lines = html.escape(plain(text), quote=False)
        show({"text/plain": text, "text/html": _WORDS.format(lines)})
    else:
        print(coloured(text))


def show_until_next(text: str) -> None:
    """Show a text on a page until the cell's next output takes its place; all of it is ours."""
    if frontend().has_widgets and _is_ours_alone():
        from IPython.display import clear_output

        _display({"text/plain": text})
        clear_output(wait=True)


def in_background(work: Callable[[], None], name: str) -> threading.Thread:
    """Return a thread, not started yet, that ends quietly where a run or a study is deleted.

    It has the context of the cell or message, so that what it sends has a parent.
    """

    def until_deleted() -> None:
        with suppress(RunUnreadable, FileNotFoundError):
            work()

    context = contextvars.copy_context()
    return threading.Thread(target=context.run, args=(until_deleted,), name=name, daemon=True)


def replaceable() -> bool:
    """Return whether an output of the running cell can take the place of another."""
    return frontend() is not Frontend.SERVER or _is_ours_alone()


def pause_s() -> float:
    """Return the pause between two replacements of an output that moves, in seconds."""
    return REDRAWN_EVERY_S if frontend() is Frontend.SERVER else REPLACED_EVERY_S


class _Updated(CellOutput):
    def __init__(self, bundle: Bundle) -> None:
        from IPython.display import DisplayHandle

        self._handle: DisplayHandle = DisplayHandle(f"distrain-{uuid4().hex}")
        self._handle.display(bundle, raw=True)

    def replace(self, bundle: Bundle) -> None:
        self._handle.update(_shown(bundle), raw=True)


class _Redrawn(CellOutput):
    """One of ours in a cell, all of which are displayed anew when one changes."""

    _of_cell: tuple[str, list[_Redrawn]] = ("", [])

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        cell = str(running_cell().get("header", {}).get("msg_id", ""))
        if _Redrawn._of_cell[0] != cell:
            _Redrawn._of_cell = (cell, [])
        _Redrawn._of_cell[1].append(self)
        _display(bundle)

    def replace(self, bundle: Bundle) -> None:
        replace_all((self, bundle))


def _shown(bundle: Bundle) -> Bundle:
    """Strip a text for a terminal of all escapes but colours."""
    plain = "text/plain"
    return {**bundle, plain: coloured(bundle[plain])} if plain in bundle else bundle


def _redraw(changed: list[_Redrawn]) -> None:
    """Redraw outputs. Where other output stands in the cell, show what has changed below it."""
    if not _is_ours_alone():
        for output in changed:
            _display(output.bundle)
        return
    from IPython.display import clear_output

    clear_output(wait=True)
    for output in _Redrawn._of_cell[1]:
        _display(output.bundle)


def _display(bundle: Bundle) -> None:
    from IPython.display import display

    if any(bundle.values()):
        display(bundle, raw=True)


def _is_ours_alone() -> bool:
    code = str(running_cell().get("content", {}).get("code", "")).strip()
    return code.startswith(OWN_CELL) or (code.startswith(OWN_LINE) and "\n" not in code)
