"""The widget that shows the job builder.

The outputs of a form: a widget while a page shows it, and what a saved notebook keeps of it.

Messages of a page to its form, by their `do`.

Puts messages of a page into the order in which they were sent.

JupyterLab sends what concerns a widget by the kernel's shell until the subshell that it has asked
for is there. Then two threads take messages side by side, and a later one may come first.
"""

from __future__ import annotations

import html
import time
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import Frontend, frontend
from distrain_nb.ui.widgets import STATIC, Widget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from distrain_nb.ui.form.builder import Form

_BOX = "border:1px solid #8888;border-radius:8px;padding:4px 12px;margin:2px 0 6px"
_SMALL = "font-size:12px;opacity:0.8;margin:4px 0"
_CODE = "white-space:pre-wrap;font-size:12px;margin:4px 0"
AGAIN = "This form works while its kernel runs. To continue from here, run:"


class FormOutputs:
    """Shows a form, and keeps the document of each of its outputs as the form is.

    A page gets the widget first. Once Jupyter's page says that it shows it, the document takes its
    place and marks where the live form goes on: a notebook that is saved then opens with the
    document, where a widget's view would say only that its model wasn't found.
    """

    def __init__(self, widget: FormWidget) -> None:
        self._widget = widget
        self._shown: list[outputs.CellOutput] = []
        self._kept = ""

    def show(self, text: str) -> None:
        """Display the form, which is `text` where nothing else can be shown."""
        first = outputs.show(self._first(text))
        if frontend() is Frontend.PAGE:
            self._shown.append(first)
        if self._kept:
            self._kept = ""
            self.keep(text)

    def changed(self, text: str) -> None:
        """Bring documents up to date that stand in a page already."""
        if self._kept:
            self.keep(text)

    def keep(self, text: str) -> None:
        """Put the form as it is now into its outputs, as a document."""
        page = self._document(live=True)
        if page == self._kept:
            return
        self._kept = page
        bundle = {"text/html": page, "text/plain": text}
        outputs.replace_all(*((output, bundle) for output in self._shown))

    def _first(self, text: str) -> outputs.Bundle:
        shown_by = frontend()
        bundle: outputs.Bundle = {
            "text/html": self._document(live=shown_by is Frontend.SERVER),
            "text/plain": text,
        }
        if shown_by is Frontend.PAGE:
            view = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        return bundle

    def _document(self, *, live: bool) -> str:
        view = self._widget.view
        mark = f'<i hidden data-distrain-live="{self._widget.key}"></i>' if live else ""
        place = dict(view["places"])[view["on"]]
        return (
            f'{mark}<div class="distrain {LITERAL}" {OWN_KEYS} style="{_BOX}">'
            f"<b>Job layout: {html.escape(place)}</b>"
            f'<div style="{_SMALL}">{html.escape(view["verdict"])}</div>'
            f'<pre style="{_CODE}">{html.escape(view["cell"])}</pre>'
            f'<p style="{_SMALL}">{AGAIN}</p>'
            f'<pre style="{_CODE}">{html.escape(view["again"])}</pre></div>'
        )


ACTIONS: dict[str, Callable[[Form, Mapping[str, Any]], object]] = {
    "set": lambda form, it: form.set(it["path"], it["text"], it["group"]),
    "choose": lambda form, it: form.choose(it["path"], it["text"]),
    "add": lambda form, it: form.add(it["role"]),
    "remove": lambda form, it: form.remove(it["role"]),
    "tune": lambda form, _: form.tune(),
    "untune": lambda form, it: form.untune(int(it["row"])),
    "begin": lambda form, _: form.begin_with(),
    "unbegin": lambda form, it: form.not_begin_with(int(it["row"])),
    "size": lambda form, _: form.size_reducers(),
    "repair": lambda form, it: form.repair(it["code"], it["where"], it["label"]),
    "gradient": lambda form, it: form.set_gradient(it["text"]),
    "step": lambda form, it: form.set_step(it["text"]),
    "regions": lambda form, _: form.compare_regions(),
    "undo": lambda form, _: form.undo(),
    "redo": lambda form, _: form.redo(),
    "save": lambda form, it: form.ask_to_save(it["name"]),
    "load": lambda form, it: form.load(it["name"].strip()),
    "paste": lambda form, it: form.paste(it["text"]),
}


# What has not come by then is lost, or stands behind a cell that computes.
LOST_AFTER_S = 3.0


class PageOrder:
    """Calls `take` with messages that have a `page` and a `number`, from 1 in each page.

    One that comes before those that were sent before it waits for them until another one comes
    after `LOST_AFTER_S`. What comes later still has been overtaken, and is left out.
    """

    def __init__(self, take: Callable[[Mapping[str, Any]], object]) -> None:
        self._take = take
        self._lock = RLock()
        self._taken: dict[str, int] = {}
        self._early: dict[str, dict[int, tuple[float, Mapping[str, Any]]]] = {}

    def put(self, message: Mapping[str, Any]) -> bool:
        """Take a message and those that waited for it, or keep it until its turn; return False for
        one whose turn is over, as a page sends again what it has no answer to."""
        page, number = message["page"], message["number"]
        with self._lock:
            if number <= self._taken.get(page, 0):
                return False
            early = self._early.setdefault(page, {})
            early.setdefault(number, (time.monotonic(), message))  # it may be sent again
            while early and self._is_due(page, early):
                self._taken[page] = min(early)
                self._take(early.pop(self._taken[page])[1])
            return True

    def last(self, page: str) -> int:
        """Return the number of the last message that has been taken from a page."""
        return self._taken.get(page, 0)

    def _is_due(self, page: str, early: Mapping[int, tuple[float, Mapping[str, Any]]]) -> bool:
        """Return whether the first of them is the next, or has waited long enough."""
        if min(early) == self._taken.get(page, 0) + 1:
            return True
        return time.monotonic() - min(came for came, _ in early.values()) > LOST_AFTER_S


class FormWidget(Widget):
    """The form's widget, drawn by `page/src/form/`. It sends what the user does; see `Form`.

    Change its traits within `hold_sync`, by one thread at a time: ipywidgets 8.1 forgets what a
    second thread changes while the first sends. Prices come in a thread of their own.
    """

    _esm = STATIC / "form.js"
    _css = STATIC / "form.css"

    view = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    files = traitlets.Dict().tag(sync=True)
    heard = traitlets.List().tag(sync=True)
    key = traitlets.Unicode("").tag(sync=True)
    tab = traitlets.Unicode("options").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self._lock = RLock()
        super().__init__(**traits)

    @contextmanager
    def hold_sync(self) -> Iterator[None]:
        """Send what changes within as one message."""
        with self._lock, super().hold_sync():
            yield
