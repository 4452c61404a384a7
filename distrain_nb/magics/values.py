"""The values that options and verbs take, as far as they can be known, for completion."""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.backends import plugins
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.layout import OPTIONS, Layout, Pool, load
from distrain_nb.layout.files import saved
from distrain_nb.layout.text import changed
from distrain_nb.magics.help import topics
from distrain_nb.program.python.names import Names, names_of
from distrain_nb.repairs import head_lines, head_options
from distrain_nb.run import Run, Store
from distrain_nb.run.summary import plural

if TYPE_CHECKING:
    from distrain_nb.layout.choices import Choice

_POOLS = ("primary", "workers", "servers", "reducers", "evaluators")
_FIELDS = ("region", "framework", "distribution", "tier")
_MOST_RUNS = 50  # whose states are asked for


class Completion(NamedTuple):
    """A word, and what it is for."""

    text: str
    about: str = ""


def place_in(words: Sequence[str]) -> str:
    """Return the value of `--on` on a line; empty without it."""
    chosen = [after for word, after in pairwise(words) if word == "--on"]
    chosen += [word.partition("=")[2] for word in words if word.startswith("--on=")]
    return chosen[-1] if chosen else ""


def values(
    action: argparse.Action, before: Sequence[str], word: str, cell: str
) -> tuple[str, Iterable[Completion]]:
    """Return the part of a word that is completed, and what an option of a line can have there.

    `before` are the line's words, `cell` is the text of the whole cell.
    """
    place, name = place_in(before), action.dest
    if name in _POOLS:
        return _machines(name, place, word)
    if name in _FIELDS:
        return word, list(_chosen(name, place))
    if name in ("send", "keep"):
        return word.rpartition(",")[2], list(names_of_ranks(cell))
    if name in _FROM_CELL:
        return word.rpartition(",")[2], list(_FROM_CELL[name](cell))
    if name in _OFFERED:
        return word, list(_OFFERED[name]())
    if choices := list(_of_backend(name, place, before)):
        return word, choices
    allowed = list(action.choices or str(action.metavar).split("|"))
    return word, [Completion(text) for text in allowed if len(allowed) > 1]


def _machines(role: str, place: str, word: str) -> tuple[str, Iterable[Completion]]:
    """Return machines, or behind a machine's `+` the accelerators that it takes."""
    word = word.rpartition("|")[2]  # an alternative is a machine too
    machine, plus, accelerators = word.rpartition("+")
    if plus:
        pool = Pool(machine=machine.rpartition("*")[2])
        return accelerators, list(_accelerators(role, place, pool))
    return word.rpartition("*")[2], list(_chosen(f"{role}.machine", place, {role: Pool()}))


def _accelerators(role: str, place: str, pool: Pool) -> Iterator[Completion]:
    path = f"{role}.accelerator"
    for on in _places_of(place):
        for choice in _fitting(path, on, {role: pool}):
            with_it = {role: replace(pool, accelerator=str(choice.value))}
            for count in _fitting(f"{path}_count", on, with_it):
                name = choice.label.partition(" · ")[0]
                yield Completion(f"{count.value}*{name}", f"accelerators for {pool.machine}")


def _chosen(path: str, place: str, pools: Mapping[str, Pool] | None = None) -> Iterator[Completion]:
    """Yield the values that a field can take at a place, or at all of them."""
    for on in _places_of(place):
        title = "" if place else plugins.title_of(on)
        for choice in _fitting(path, on, pools or {}):
            about = choice.label.partition(" · ")[2]
            yield Completion(str(choice.value), ", ".join(filter(None, (about, title))))


def _of_backend(name: str, place: str, before: Sequence[str]) -> Iterator[Completion]:
    """Yield the values that a backend's option can take with the layout of a line, as far as it
    can be read."""
    for choice in plugins.option_choices(_layout_in(before, place), name) if place else ():
        if choice.fits and choice.value is not None:
            yield Completion(str(choice.value), choice.label.partition(" · ")[2])


def _layout_in(words: Sequence[str], place: str) -> Layout:
    """Return the layout of a line's words, with the options that can be read."""
    layout, fields = Layout(), {name: o.field for o in OPTIONS for name in o.names}
    for word, after in pairwise(words):
        name, equals, value = word.partition("=")
        with suppress(DistrainError):
            layout = changed(
                layout, {fields[name]: value if equals else after} if name in fields else {}
            )
    return replace(layout, on=place)


def _places_of(place: str) -> list[str]:
    return [place] if place else plugins.names()


def _fitting(path: str, place: str, pools: Mapping[str, Pool]) -> Iterator[Choice]:
    for choice in plugins.choices(Layout(on=place, **pools), path):  # type: ignore[arg-type]
        if choice.fits and choice.value is not None:
            yield choice


def _layouts() -> Iterator[Completion]:
    for name in saved():
        try:
            yield Completion(name, str(load(name)))
        except DistrainError as error:
            yield Completion(name, str(error))


def _places() -> Iterator[Completion]:
    for backend in plugins.all_backends():
        yield Completion(backend.name, backend.title)


def scripts(word: str) -> Iterator[Completion]:
    """Complete the path of a Python file, or of a folder that may have some."""
    above = word.rpartition("/")[0]
    for path in sorted(Path(above or ".").expanduser().glob("*")):
        name = f"{above}/{path.name}" if above else path.name
        if path.suffix == ".py":
            yield Completion(name, "script")
        elif path.is_dir() and not path.name.startswith((".", "_")):
            yield Completion(f"{name}/", "folder")


def _settings() -> Iterator[Completion]:
    for name, about in Config.documented(plugins.settings()).items():
        yield Completion(f"{name}=", about)


def _runs() -> Iterator[Completion]:
    yield Completion("last", "the newest run")
    names: set[str] = set()
    for number, record in enumerate(Store().all()):
        if record.name not in names:
            names.add(record.name)
            yield Completion(record.name, _state(Run(record)) if number < _MOST_RUNS else "")


def _compared() -> Iterator[Completion]:
    yield from _runs()
    for name in dict.fromkeys(record.experiment for record in Store().all() if record.experiment):
        yield Completion(name, "the runs of an experiment or a study")


def _state(run: Run) -> str:
    try:
        return f"run {run.id}, {run.state}"
    except DistrainError:
        return f"run {run.id}, unreadable"


def _values_in(cell: str) -> Iterator[Completion]:
    """Yield names that the cell gives values: what rank 0 can bring back."""
    for name in sorted(_body(cell).binds):
        yield Completion(name, "set in the cell")


def names_of_ranks(cell: str) -> Iterator[Completion]:
    """Yield the names that the ranks have of the session that a cell is for."""
    from distrain_nb.run.session import find_session

    words = head_options(cell).split()
    name = next((after for word, after in pairwise(words) if word == "--in"), "")
    name = next((word.partition("=")[2] for word in words if word.startswith("--in=")), name)
    with suppress(DistrainError):
        session = find_session(name)
        entries = {
            entry: table[entry]
            for table in session.names([*session.ranks]).tables.values()
            for entry in table
            if name and entry.isidentifier()
        }
        for entry, about in entries.items():
            yield Completion(entry, f"{about['type']} in the ranks")


def _sessions() -> Iterator[Completion]:
    from distrain_nb.api.sessions import sessions

    for session in sessions():
        status = session.status
        if not status.state.final:
            yield Completion(session.name, f"{plural(len(session.ranks), 'rank')}, {status.phase}")


def _needed(cell: str) -> Iterator[Completion]:
    """Yield values that the cell takes from the notebook, with what they are, and what it lacks."""
    namespace = {**vars(builtins), **getattr(sys.modules.get("__main__"), "__dict__", {})}
    for name in _body(cell).needs:
        value = namespace.get(name)
        if not callable(value) and not isinstance(value, ModuleType):
            now = repr(value) if isinstance(value, (bool, int, float)) else type(value).__name__
            yield Completion(f"{name}=", f"now {now}" if name in namespace else "not defined")


def _body(cell: str) -> Names:
    """Return the text below the line with our magic; empty where it can't be read."""
    try:
        return names_of(ast.parse("\n".join(cell.split("\n")[head_lines(cell) :])).body)
    except (SyntaxError, ValueError):
        return names_of([])


_FROM_CELL: dict[str, Callable[[str], Iterable[Completion]]] = {
    "result": _values_in, "param": _needed, "data": _needed,
}  # fmt: skip
_OFFERED: dict[str, Callable[[], Iterable[Completion]]] = {
    "layout": _layouts,
    "on": _places,
    "session": _sessions,
    "help": lambda: [Completion(topic) for topic in topics()],
}
# What verbs are about, by their arguments.
OPERANDS: dict[str, Callable[[], Iterable[Completion]]] = {
    "run": _runs, "runs": _compared, "layout": _layouts, "settings": _settings,
    "session": _sessions,
}  # fmt: skip
