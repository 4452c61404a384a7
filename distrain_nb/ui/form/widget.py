"""The widget that shows the job builder, and the messages of a page to it, by their `do`."""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.ui.widgets import STATIC, Widget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from distrain_nb.ui.form.builder import Form


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
