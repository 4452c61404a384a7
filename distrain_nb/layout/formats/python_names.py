"""Values of names, dictionaries and calls of a text, and which changes of them are unsure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

MOST_PARTS = 10_000
_MOST_COPIED = 100_000

MISSING = object()


class Unread:
    """A value that only running the text would tell, and the line that makes it unknown."""

    def __init__(self, line: int | None = None) -> None:
        self.line = line

    def path(self, path: str) -> str:
        """Return the path of the value, with its line."""
        return path if self.line is None else f"{path} (line {self.line})"


@dataclass(eq=False)
class Call:
    """A call with its arguments, and in `steps` what is done later to the object it gives."""

    name: str
    line: int
    args: list[object]
    values: dict[str, object]
    blocks: tuple[int, ...] = ()
    owner: object = None
    steps: list[Call] = field(default_factory=list)
    assigns: bool = False
    late: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name}(…) in line {self.line}"

    @property
    def makes(self) -> bool:
        """Whether it makes an object of a class from arguments with names."""
        return self.name[:1].isupper() and not self.args

    def surely(self, step: Call) -> bool:
        """Return whether a step is taken whenever this call is made."""
        return self.blocks[: len(step.blocks)] == step.blocks

    def settled(self) -> dict[str, object]:
        """Return the arguments, with the attributes that were assigned later."""
        values = dict(self.values)
        for step in self.steps:
            if step.assigns:
                values[step.name] = step.args[0] if self.surely(step) else Unread(step.line)
        return values


@dataclass
class Function:
    """A function of the text, and what a call of it may change."""

    changes: list[Mutation]


@dataclass
class Mutation:
    """A change of an item in a dict or list, with the item's value before it."""

    container: dict[Unknown, object] | list[object]
    key: object
    before: object
    line: int


class PythonNames:
    """The names of a text, and the calls that were read.

    `wanted` tells the calls whose arguments are kept as they were when the call was made.
    `positions` has the names of arguments that a class takes by position.
    """

    def __init__(
        self, is_kept: Callable[[Call], bool], positions: Mapping[str, Sequence[str]]
    ) -> None:
        self.names: dict[Unknown, object] = {}
        self.calls: list[Call] = []
        self._is_kept, self._positions = is_kept, positions
        self._used: dict[int, tuple[object, Call, str]] = {}
        self._journal: list[list[Mutation]] = []
        self._blocks: tuple[int, ...] = ()
        self._count = self._copied = self._line = 0

    def _mark(self, changes: Iterable[Mutation]) -> None:
        for change in changes:
            self._line = change.line
            self._write(change.container, change.key, Unread(change.line))

    def _block(self, read: Callable[[], None]) -> list[Mutation]:
        """Read a block and return its changes, which are then taken back."""
        before = self._blocks
        self._count += 1
        self._blocks = (*before, self._count)
        self._journal.append([])
        read()
        changes = self._journal.pop()
        self._blocks = before
        for change in reversed(changes):
            _put(change.container, change.key, change.before)
        return changes

    def _write(self, container: Unknown, key: object, value: object) -> None:
        """Put a value into names, a dictionary or a list (key None: at its end)."""
        if key is None and isinstance(container, list):
            before: object = len(container)
        elif isinstance(container, list):
            before = container[key]  # type: ignore[call-overload]
        else:
            before = container.get(key, MISSING)
        if self._journal:
            self._journal[-1].append(Mutation(container, key, before, self._line))
        if id(container) in self._used:
            _, call, argument = self._used[id(container)]
            path = argument if key is None else f"{argument}.{key}"
            call.late.append(Unread(self._line).path(path))
        if key is None and isinstance(container, list):
            container.append(value)
        else:
            _put(container, key, value)

    def _taint(self, value: object) -> None:
        """Take all that an object holds for unknown."""
        if isinstance(value, dict):
            for key in [*value, "**"]:
                self._write(value, key, Unread(self._line))
        elif isinstance(value, list):
            self._write(value, None, Unread(self._line))

    def _update(self, container: dict[Unknown, object], more: Mapping[Unknown, object]) -> None:
        for key, value in list(more.items()):
            self._write(container, key, value)

    def _step(self, of: Call, step: Call) -> None:
        step.blocks = self._blocks
        of.steps.append(step)
        if id(of) in self._used and step.assigns:
            _, call, argument = self._used[id(of)]
            call.late.append(Unread(step.line).path(f"{argument}.{step.name}"))

    def _take(self, call: Call) -> None:
        """Add a call, and keep the arguments as they are now if it is wanted."""
        names = self._positions.get(call.name, ())
        if call.args and len(call.args) <= len(names):
            call.values |= dict(zip(names, call.args, strict=False))
            call.args, call.unnamed = [], []
        self.calls.append(call)
        if self._is_kept(call):
            for argument, value in call.values.items():
                self._use(value, call, argument)
            call.values = {name: self._copy(value) for name, value in call.values.items()}

    def _use(self, value: object, call: Call, argument: str) -> None:
        rest, count = [(value, argument)], 0
        while rest:
            inner, path = rest.pop()
            if (count := count + 1) > MOST_PARTS:
                raise OptionError(f"line {call.line} stands for more than {MOST_PARTS:,} values")
            if isinstance(inner, (dict, list, Call)):
                self._used.setdefault(id(inner), (inner, call, path))
            if isinstance(inner, Call):
                inner = inner.values
            if isinstance(inner, dict):
                rest += [(member, f"{path}.{key}") for key, member in inner.items()]
            elif isinstance(inner, (list, tuple)):
                rest += [(member, f"{path}[{number}]") for number, member in enumerate(inner)]
        self._copied += count
        if self._copied > _MOST_COPIED:
            raise OptionError(f"the calls stand for more than {_MOST_COPIED:,} values")

    def _copy(self, value: object) -> object:
        if isinstance(value, dict):
            return {key: self._copy(member) for key, member in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._copy(member) for member in value)
        if isinstance(value, Call):
            settled = {key: self._copy(member) for key, member in value.settled().items()}
            return Call(value.name, value.line, value.args, settled, value.blocks)
        return value


def _put(container: Unknown, key: Unknown, value: Unknown) -> None:
    if key is None and isinstance(container, list):
        del container[value:]
    elif value is MISSING:
        container.pop(key, None)
    else:
        container[key] = value
