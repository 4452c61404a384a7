"""Settings of the process: which ones the notebook has made, and what changed them while the world
was asked. Variables of the environment: what statements found there."""

from __future__ import annotations

import os
import re
import sys
import warnings
from dis import get_instructions
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import column_of, frames_to, is_top_level, kind_of, run_by, top_of
from distrain_nb.observed.generators import GENERATORS, marks
from distrain_nb.observed.module_changes import is_users
from distrain_nb.worker.rank.process_setting import FIRST, is_of_package
from distrain_nb.worker.rank.process_state import TABLE, is_set_by, read
from distrain_nb.worker.rank.since_import import SinceImport

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import CodeType, FrameType

_FILTERS, _LOGGERS = "warnings:filters", "logging:getLogger()"  # which imports change
_SET_FILTERS = {"filterwarnings", "simplefilter", "resetwarnings", "filters"}
SEEDS = re.compile(r"(\w+\.)*\w*(seed\w*|set_?(rng_)?state)|(\w+\.)*enable_full_determinism")
_BEGINS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF"}


class Settings:
    """The settings of a notebook's process."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._first: dict[str, Any] = {}
        self._has_begun = False  # a cell that isn't stored doesn't count as executed
        self._before: dict[str, Any] | None = None
        self._of_world: dict[str, tuple[Any, tuple[str, int, int]]] = {}
        self._filters, self._sets_filters = [*warnings.filters], False
        self._own_filters: list[Any] = []
        self.seeded: list[Seeded] = []
        self._at_seed: dict[str, str] = {}
        self._modules_before = {*sys.modules}
        self._at_import: dict[str, tuple[Mapping[Any, Any], Mapping[Any, Any]]] = {}
        self._imported()

    def find(self) -> None:
        """Take the settings for those that the notebook finds, once, before its first cell: IPython
        runs files at its start, the extension too, with a `sys.argv` of their own."""
        if not self._has_begun:
            self._has_begun = True
            self._first.clear()
            self._imported()

    def keep(self) -> None:
        """Keep the settings before a statement that asks for the world, or reads what knows it."""
        if self._before is None:
            self._before = dict(read())

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """Look what the statement at that place has set."""
        if seeds := [*seeds_in(code, self.namespace)]:
            self.seeded += [Seeded(*at, name) for name in seeds]
            of_these = {g for g in GENERATORS for name in seeds if name.startswith(f"{g}.")}
            now = marks()
            self._at_seed.update({g: now[g] for g in now if g in of_these or not of_these})
        before, self._before = self._before, None
        imports = len(sys.modules) != self._modules
        if warnings.filters != self._filters:
            before_filters, self._filters = self._filters, [*warnings.filters]
            if not imports or self._names_setters(code):
                self._sets_filters = True
                self._own_filters += [f for f in self._filters if f not in before_filters]
        if imports:
            self._keep_at_import()
            self._imported()
        if before is not None:
            now = dict(read())
            changed = {n: (now[n], at) for n in before if now.get(n) != before[n]}
            self._of_world.update(changed)

    def _names_setters(self, code: CodeType) -> bool:
        run = run_by(code, self.namespace)
        return any(not _SET_FILTERS.isdisjoint(inner.co_names) for inner, _ in run)

    def _imported(self) -> None:
        """Keep how the settings of new modules are, and their loggers."""
        self._modules = len(sys.modules)
        others = {name for name, state in TABLE.items() if state.usual is not FIRST}
        for name, value in read(but={*others, *self._first.keys() - {_LOGGERS}}):
            before = self._first.get(name, {}) if name == _LOGGERS else {}
            self._first[name] = {**value, **before} if before else value

    def _keep_at_import(self) -> None:
        """Keep what the process had when the user's own modules had been imported."""
        new, self._modules_before = sys.modules.keys() - self._modules_before, {*sys.modules}
        users = [name for name in new if is_users(sys.modules.get(name))]
        if users:
            self._at_import.update(dict.fromkeys(users, _state()))

    def since_import(self, modules: Collection[str]) -> dict[str, SinceImport]:
        """Return what is another one than when these modules had been imported, by the modules."""
        since = dict[str, SinceImport]()
        imported = modules & self._at_import.keys()
        settings, variables = _state() if imported else ({}, {})
        for module in imported:
            before_settings, before_variables = self._at_import[module]
            names = _others(before_variables, variables)
            deleted = [name for name in names if _value(name) is None]
            changed = [name for name in names if name not in deleted]
            since[module] = SinceImport(_others(before_settings, settings), changed, deleted)
        return {module: names for module, names in since.items() if any(names)}

    def changed(
        self, roots: Collection[str], by_world: Collection[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the settings that the notebook has made, by their names in the table, with their
        values: those of these packages, or of some that they import, but for what functions
        `by_world` set."""
        for name, value in read(but=() if self._sets_filters else {_FILTERS}):
            if name == _FILTERS:  # packages make theirs when a rank imports them
                value = [f for f in value if self._is_carried(f, roots)]
            different = TABLE[name].differs(value, self._first.get(name, value))
            if different is None or any(is_set_by(name, function) for function in by_world):
                continue
            if is_brought(name.partition(":")[0], roots):
                yield name, different

    def drawn_from(self) -> set[str]:
        """Return the generators that something has drawn from since a statement last seeded any, by
        their modules."""
        now = marks()
        return {name for name, mark in self._at_seed.items() if now.get(name) != mark}

    def asked_at(self, name: str) -> tuple[str, int, int] | None:
        """Return the place of the statement that made a setting while it asked for the world."""
        value, at = self._of_world.get(name, (None, None))
        return at if at and dict(read())[name] == value else None

    def _is_carried(self, warning_filter: Any, roots: Collection[str]) -> bool:
        category = warning_filter[2]
        own = warning_filter in self._own_filters and is_brought(category.__module__, roots)
        return own or not is_of_package(category)


def _state() -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    """Return the settings and the variables of this process; nobody notes that."""
    return dict(read()), dict(os.environ._data)  # type: ignore[attr-defined]


def _others(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> list[str]:
    """Return the names that stand for something else now."""
    names = {*before, *now}
    return sorted(os.fsdecode(n) for n in names if before.get(n) != now.get(n))


def is_brought(module: str, roots: Collection[str]) -> bool:
    """Return whether a program that imports these packages has a module."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in roots:
        return True
    package = sys.modules.get(root)
    return any(
        type(loaded) is ModuleType and vars(loaded).get(root) is package
        for name, loaded in [*sys.modules.copy().items()]
        if name.partition(".")[0] in roots
    )


class Seeded(NamedTuple):
    """A function that a statement called, itself or in a function, and that seeds a generator."""

    label: str
    line: int
    column: int
    name: str


def seeds_in(code: CodeType, namespace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the full names of functions of packages that seed a generator, as code that runs with a
    statement names them."""
    for inner, _ in run_by(code, namespace):
        if not any(map(SEEDS.fullmatch, inner.co_names)):
            continue
        written: list[str] = []
        for instruction in get_instructions(inner):
            if instruction.opname in _BEGINS:
                written = [str(instruction.argval)]
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                written.append(str(instruction.argval))
            else:
                continue
            if SEEDS.fullmatch(written[-1]) and (name := _full_name(written, namespace)):
                yield name


def _full_name(written: list[str], namespace: Mapping[str, Any]) -> str:
    """Return the name of a package's function with its module; empty for another's."""
    first, *rest = written
    value = namespace.get(first, sys.modules.get({"np": "numpy"}.get(first, first)))
    if isinstance(value, ModuleType):
        return ".".join((value.__name__, *rest))
    is_function = callable(value) and getattr(value, "__module__", None) != "__main__"
    return f"{value.__module__}.{first}" if is_function and not rest else ""


class VariablesRead(NamedTuple):
    """The variables of the environment that a statement read, with what it found."""

    label: str
    line: int
    column: int
    values: dict[str, str | None]


class Variables:
    """The variables of the environment that the user's own statements read; `of` has the reads of
    a cell, or a module's file."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.noted: set[str] = set()  # of the running statement; what is read again is the same
        self._read: dict[str, str | None] = {}
        self.of: dict[str, list[VariablesRead]] = {}

    def note(self, variable: str, frame: FrameType) -> None:
        """Note that a variable is read, also for the modules that are being imported."""
        try:
            top = top_of(frame, self.namespace)  # what is below it has started the kernel
            frames = [item for item in frames_to(frame, top) if kind_of(item)]
            is_theirs = bool(frames) and kind_of(frames[0]) == "own"
            tops = [f for f in frames if is_theirs and is_top_level(f) and kind_of(f) == "own"]
            modules = [f for f in tops if f.f_globals.get("__name__") != "__main__"]
            for item in modules:
                file, values = item.f_code.co_filename, {variable: _value(variable)}
                read = VariablesRead(file, item.f_lineno, column_of(item), values)
                self.of.setdefault(file, []).append(read)
            if is_theirs and not modules:
                self._read.setdefault(variable, _value(variable))
            if not modules:
                self.noted.add(variable)
        except Exception:  # whatever is odd about a frame: the user's code goes on
            return

    def look(self, at: tuple[str, int, int]) -> None:
        """Keep what the statement at that place has read."""
        if self._read:
            self.of.setdefault(at[0], []).append(VariablesRead(*at, self._read))
            self._read = {}
        self.noted.clear()


def _value(variable: str) -> str | None:
    """Return a variable of the environment; nobody notes that."""
    key, data = os.environ.encodekey(variable), os.environ._data  # type: ignore[attr-defined]
    return os.environ.decodevalue(data[key]) if key in data else None


def has_changed(read: VariablesRead) -> set[str]:
    """Return the variables that are others by now."""
    return {name for name, value in read.values.items() if _value(name) != value}
