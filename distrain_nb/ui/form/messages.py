"""Messages of a page to its form, by their `do`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    "undo": lambda form, _: form.undo(),
    "redo": lambda form, _: form.redo(),
    "save": lambda form, it: form.ask_to_save(it["name"]),
    "load": lambda form, it: form.load(it["name"].strip()),
    "paste": lambda form, it: form.paste(it["text"]),
}
