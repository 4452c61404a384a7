"""Which statement made a class whose name means another one by now."""

from __future__ import annotations

import ast
import sys
from abc import ABCMeta
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.objects import state_of
from distrain_nb.program.notebook.code_objects import made_by
from distrain_nb.program.values.forked import in_fork
from distrain_nb.program.values.origins import attributes
from distrain_nb.worker.fingerprint import fingerprint, text_of
from distrain_nb.worker.older_classes import (
    ClassText,
    differences,
    make_older_class,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.notebook.history import ExecutionHistory, Statement

_LIMIT_S = 5.0
_STATEMENTS = (ast.ClassDef, ast.Assign)
_HOOK = "__init_subclass__"


def is_plain_class(cls: type) -> bool:
    """Return whether a class is no more than its attributes."""
    by_attributes = type(cls) in (type, ABCMeta) and not issubclass(cls, tuple)
    made_of = {"__dataclass_fields__", "__attrs_attrs__", "__orig_bases__"}
    return by_attributes and made_of.isdisjoint(vars(cls))


class Older(NamedTuple):
    """How an older class is made again: the statement with its text, what its names meant if they
    mean others by now, and the bases of the notebook that do something for each class of theirs."""

    text: ClassText
    statement: Statement
    older_names: Mapping[str, Any]
    bases: tuple[type, ...]

    def make(self, namespace: Mapping[str, Any]) -> Any:
        return make_older_class(namespace, self.text, self.older_names, self.bases)


class OlderClasses:
    """Finds the statements of classes in the executed cells."""

    def __init__(self, history: ExecutionHistory, namespace: Mapping[str, Any]) -> None:
        self.history, self.namespace = history, namespace
        self._known: dict[type, Older | None] = {}

    def of(self, cls: type) -> Older | None:
        """Return how a class is made again; None where no cell's text makes this very class, or
        where making it again changes something else of the notebook."""
        if cls not in self._known:
            candidates = [*self._candidates(cls)]
            is_sure = len(candidates) == 1 and not self._runs_own_code(cls, candidates[0])
            number = 0
            if candidates and not is_sure:  # tried in a fork, as the user's code runs there
                number = in_fork(partial(self._first_same, cls, candidates), _LIMIT_S)
            self._known[cls] = candidates[number] if candidates and number is not None else None
        return self._known[cls]

    def _candidates(self, cls: type) -> Iterator[Older]:
        annotations = __import__("__future__").annotations.compiler_flag
        flags = annotations if self.history.late_annotations else 0
        texts = set[str]()
        for executed in self.history.of(cls.__name__):
            statement, name = executed.statement, cls.__name__
            is_maker = isinstance(statement.node, _STATEMENTS) and made_by(statement, name, cls)
            if not is_maker or statement.text in texts:
                continue
            texts.add(statement.text)
            lines = tuple(statement.text.split("\n"))
            text = ClassText(statement.label, statement.line, lines, name, flags)
            needs = statement.names().needs
            named = {base.__name__: base for base in cls.__bases__ if base.__name__ in needs}
            meant = {n: base for n, base in named.items() if self.namespace.get(n) is not base}
            bases = tuple(c for c in cls.__mro__[1:] if _HOOK in vars(c) and self._owns(c))
            yield Older(text, statement, meant, bases)

    def _owns(self, obj: Any) -> bool:
        return bool(obj.__module__ == self.namespace.get("__name__", "__main__"))

    def _runs_own_code(self, cls: type, older: Older) -> bool:
        """Return whether the statement calls functions of the notebook: decorators, metaclasses."""
        needs = (use for use in older.statement.names().needs.values() if use.at_once)
        read = [self.namespace.get(use.name) for use in needs]
        definitions = (
            v for v in read if isinstance(v, (type, FunctionType)) and v not in cls.__mro__
        )
        return any(map(self._owns, [type(cls), *definitions]))

    def _first_same(self, cls: type, candidates: list[Older]) -> int | None:
        expected = fingerprint(cls.__name__, cls, ("__main__",))
        for number, older in enumerate(candidates):
            before = self._states()
            try:
                again = older.make(self.namespace)
            except Exception:  # what the text needs has changed: it may be another one
                continue
            if not [*differences(again, expected)] and self._states() == before:
                return number
        return None

    def _states(self) -> dict[str, object]:
        """Return what shows whether a name of the notebook, or what it stands for, has changed."""
        return {name: state_of(value) for name, value in self.namespace.items()}


def outer_of(cls: type) -> type | None:
    """Return the class that has this one as its own attribute, as its text says; None for none."""
    *_, outer_name, name = ("", *cls.__qualname__.split("."))
    waiting, visited = [object], set[type]()
    while waiting and outer_name:
        outer = waiting.pop()
        visited.add(outer)
        if vars(outer).get(name) is cls and outer.__name__ == outer_name:
            return outer
        waiting += [c for c in type.__subclasses__(outer) if c not in visited]
    return None


def state_of_class(cls: type) -> tuple[dict[str, Any], dict[str, str], tuple[int, int]]:
    """Return what a rank gives the class that it makes again, and compares it with."""
    changing = {n: v for n, v in attributes(cls) if n[:1] != "_" and text_of(v) is not None}
    return changing, fingerprint(cls.__name__, cls, ("__main__",)), sys.version_info[:2]
