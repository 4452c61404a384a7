"""Which names of a notebook have learned the world that the kernel lives in: a world of one.

Such an object must not travel as it is: the ranks would train as if each were alone. It is made
again in every rank from the statements that made it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.making import Making, Makings
from distrain_nb.program.notebook.own_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.process_bound import is_bound, keeps_state, name_of
from distrain_nb.program.notebook.seen import SeenReads
from distrain_nb.program.notebook.world_reads import Dependencies, Reading, WorldReads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed, ExecutionHistory, Statement

_CODE = (type, FunctionType, BuiltinFunctionType, ModuleType)
_SCALARS = (bool, int, float, complex, str, bytes, type(None), Enum, PurePath)
_MOST_PARTS = 1000


@dataclass
class World:
    """Answers for one capture."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory
    seen: SeenReads = field(default_factory=SeenReads)
    _modules: OwnModules = field(init=False)
    _makings: dict[int, Makings] = field(default_factory=dict)
    _known: dict[tuple[int, str], Dependencies] = field(default_factory=dict)
    _readings: dict[str, Reading | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._notebook = OwnModule(self.namespace, self.history)
        self._modules = OwnModules(self._notebook)
        self._reads = WorldReads(self._modules)

    @property
    def gone(self) -> set[str]:
        """Modules whose reading of the world can't be seen: their files are there no more."""
        return {module.partition(".")[0] for module in self._modules.gone}

    def learned(self, name: str) -> Reading | None:
        """What a name of the notebook has learned, itself or through what it was made from."""
        if name not in self._readings:
            self._readings[name] = self._search(name)
        return self._readings[name]

    def asked_by(self, executed: Executed) -> Reading | None:
        """What a statement of the notebook asks of the world or the machine while it runs."""
        for read in self.seen.asked(executed.statement):
            return Reading("world", read.what, read.where)
        return self._follow(self._reads.of_statement(executed.statement, self._notebook))

    def asks_itself(self, executed: Executed) -> bool:
        """Whether the user's own code asks for the world in a statement, not only a package."""
        if self.saw(executed.statement):
            return any(read.direct for read in self.seen.asked(executed.statement))
        return self.asked_by(executed) is not None

    def asked_in(self, module: OwnModule, name: str) -> Reading | None:
        """What a name of a module has learned of the world or the machine."""
        return self._follow(Dependencies(names=((module, name),)))

    def module(self, name: str) -> OwnModule | None:
        """A module of that name beside the notebook."""
        return self._modules.of(name)

    def making(self, name: str) -> Making | None:
        """The statements that made what the name stands for."""
        return self._makings_of(self._notebook).of(name)

    def worked_on(self, name: str, making: Making) -> Executed | None:
        """The statement that has changed it by work since, so that a new one is not the same."""
        value = self.namespace.get(name)
        if is_settings(value) or not keeps_state(value) or self._wraps_what_travels(value, making):
            return None
        return self._makings_of(self._notebook).worked_on(name, making)

    def used_since(self, name: str, making: Making) -> bool:
        """Whether something was trained with it since, which may leave its traces."""
        return self._makings_of(self._notebook).worked_on(name, making) is not None

    def saw(self, statement: Statement) -> bool:
        """Whether a statement of the notebook ran while the extension was there."""
        return self.seen.saw(statement, self._notebook)

    def uses(self, statement: Statement) -> bool:
        """Whether a statement trains or evaluates, so that what it changes is no setting."""
        return self._makings_of(self._notebook).uses(statement)

    def fillings(self, name: str, since: Executed) -> tuple[Executed, ...]:
        """The statements since that asked for the world, and changed a class meanwhile."""
        return tuple(self._makings_of(self._notebook).fillings(name, since))

    def begins_group(self, name: str) -> bool:
        """Whether making it again, with all that it is made from, also makes its process group."""
        return any(
            "init_process_group" in reading.what for reading, _ in self._asked(self._name(name))
        )

    def _search(self, name: str) -> Reading | None:
        return self._follow(self._name(name))

    def _name(self, name: str) -> Dependencies:
        return Dependencies(names=((self._notebook, name),))

    def _follow(self, first: Dependencies) -> Reading | None:
        for reading in first.readings:
            return reading
        device = None
        for reading, plain in self._asked(first):
            if reading.kind == "world":
                return reading
            device = device or (reading if plain else None)
        return device

    def _asked(self, first: Dependencies) -> Iterator[tuple[Reading, bool]]:
        """What was asked on the way to a value, and whether all on the way is settings."""
        waiting: deque[tuple[Any, bool, bool]] = deque(
            (node, True, False) for node in (*first.names, *first.calls)
        )
        visited: set[Any] = set()
        while waiting:
            node, plain, seen = waiting.popleft()
            key = (id(node[0]), node[1]) if isinstance(node, tuple) else (name_of(node), seen)
            if key in visited:
                continue
            visited.add(key)
            if isinstance(node, tuple):
                dependencies = self._dependencies(*node)
                making = self._makings_of(node[0]).of(node[1])
                seen = self._saw_all(node[0], making)
                plain = plain and is_settings(node[0].namespace.get(node[1]))
                plain = plain and not (making and making.result)
            else:
                dependencies = self._reads.of_call(node)
            for reading in dependencies.readings:
                if not (seen and reading.likely):
                    yield reading, plain
            waiting.extend(
                (following, plain, seen) for following in (*dependencies.names, *dependencies.calls)
            )

    def _saw_all(self, module: OwnModule, making: Making | None) -> bool:
        """Whether all that made something ran while the extension was there to see it."""
        chain = making.chain if making else ()
        return all(self.seen.saw(executed.statement, module) for executed in chain)

    def _dependencies(self, module: OwnModule, name: str) -> Dependencies:
        key = (id(module), name)
        if key not in self._known:
            self._known[key] = self._look(module, name)
        return self._known[key]

    def _look(self, module: OwnModule, name: str) -> Dependencies:
        value = module.namespace.get(name)
        if isinstance(value, _CODE):
            return self._asked_by(self._filled_code(module, name), name, value)
        making = self._makings_of(module).of(name)
        if is_bound(value):
            where = making.chain[0].statement.where if making else ""
            return Dependencies((Reading("world", type(value).__name__, where),))
        total = self._asked_by(making.chain if making else (), name, value)
        for executed in making.chain if making else ():
            dependencies = self._reads.of_statement(executed.statement, module)
            if self.seen.only_used(executed.statement, name, value):
                dependencies = replace(dependencies, calls=())
            total += dependencies
        return total

    def _asked_by(self, chain: tuple[Executed, ...], name: str, value: Any) -> Dependencies:
        """What was seen to be asked."""
        reads = (read for p in chain for read in self.seen.reads(p.statement, name, value))
        return Dependencies(tuple(Reading("world", read.what, read.where) for read in reads))

    def _filled_code(self, module: OwnModule, name: str) -> tuple[Executed, ...]:
        defined = next(iter(module.history.of(name)), None) if module is self._notebook else None
        return self.fillings(name, defined) if defined else ()

    def _makings_of(self, module: OwnModule) -> Makings:
        if id(module) not in self._makings:
            self._makings[id(module)] = Makings(module, self._modules, self.seen)
        return self._makings[id(module)]

    def _wraps_what_travels(self, value: Any, making: Making) -> bool:
        """`DDP(net)`, whose weights are those of a model that travels as it is."""
        weights = _weights(value)
        if not weights:
            return False
        names = {n for executed in making.chain for n in executed.statement.names().needs}
        inside = [self.namespace.get(n) for n in names if n in self.namespace]
        travelling = [v for v in inside if v is not value and not is_bound(v)]
        return weights <= {w for v in travelling for w in _weights(v)}


def _weights(value: Any) -> set[int]:
    parameters = getattr(value, "parameters", None)
    if isinstance(value, type) or not callable(parameters):
        return set()
    try:
        return {id(p) for p in parameters()}
    except Exception:  # some other class's method of that name
        return set()


def is_settings(value: Any) -> bool:
    """Whether a value is made of numbers, texts and devices alone: arguments, a configuration."""
    waiting, parts = [value], 0
    while waiting:
        part = waiting.pop()
        parts += 1
        if parts > _MOST_PARTS:
            return False
        if isinstance(part, _SCALARS) or name_of(type(part)) in ("torch.device", "torch.dtype"):
            continue
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple, set, frozenset)):
            waiting += part
        elif not isinstance(part, _CODE) and _is_all_python(type(part)):
            waiting += getattr(part, "__dict__", {}).values()
        else:
            return False
    return True


def _is_all_python(cls: type) -> bool:
    """Whether a class and its bases are Python's own code, so that attributes are all there is."""
    made_in_python = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    return cls is SimpleNamespace or all(c.__flags__ & made_in_python for c in cls.__mro__[:-1])
