"""Which values can be captured: a trial pickle of each, and the reason where one can't.

Functions and classes of the notebook are named in a pickle, and their source is captured; those
that no name leads to are in the pickle as their source, with what they hold.
"""

from __future__ import annotations

import hashlib
import io
import sys
from abc import ABCMeta
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import BuiltinFunctionType, CellType, FunctionType
from typing import TYPE_CHECKING, Any, BinaryIO

from distrain_nb.program.notebook.code_objects import global_names
from distrain_nb.program.notebook.package_objects import PackageObjects
from distrain_nb.program.notebook.process_objects import is_bound, name_of
from distrain_nb.program.values.nan_identity import NaNIdentity, may_hold_nan
from distrain_nb.program.values.older_classes import (
    OlderClasses,
    is_plain_class,
    outer_of,
    state_of_class,
)
from distrain_nb.program.values.origins import (
    FunctionTexts,
    attributes,
    held,
    made_with,
)
from distrain_nb.program.values.reducers import (
    completed,
    keras_object,
    reduced,
    view,
    with_state,
)
from distrain_nb.program.values.refusals import (
    GENERAL_ADVICE,
    PickleProblem,
    Refusal,
    innermost,
    refusal,
)
from distrain_nb.worker.fingerprint import is_own, own_name
from distrain_nb.worker.functions import set_cell, set_class, set_function
from distrain_nb.worker.older_classes import set_older_class
from distrain_nb.worker.pickles import Memory, View, Writer, out_of_band
from distrain_nb.worker.rank.values import Index, reason, write

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


class _LocalFunction(Exception):
    """A lambda, or a function made inside another one: it has no name to be found by."""


class Bound(Refusal):
    """The value holds an object that belongs to one process: to its rank, world or device."""

    def __init__(self, kind: str) -> None:
        super().__init__("belongs to one process of a job", "create it in the cell")
        self.kind = kind


class _TooLarge(Exception):
    """The pickle grows past what may travel."""


@dataclass(frozen=True)
class Definitions:
    """The functions and classes of a notebook, found by what they are."""

    namespace: Mapping[str, Any]
    origins: FunctionTexts = field(default_factory=FunctionTexts)
    older: OlderClasses | None = None
    by_text: Callable[[str], bool] = bool  # whether the program's text gives a name
    # Where a statement gave a definition what it knows of the world: cell, line, column.
    given_by: Callable[[Any], tuple[str, int, int] | None] = lambda _: None
    packages: PackageObjects = field(default_factory=PackageObjects)
    by_digest: bool = False  # values are told from what they were before by that

    @property
    def module(self) -> str:
        """What the notebook's own functions have as their `__module__`."""
        return str(self.namespace.get("__name__", "__main__"))

    def owns(self, obj: object) -> bool:
        """Return whether a function or class was made by the notebook's own code."""
        if isinstance(obj, type):
            return is_own(obj, (self.module,))
        return getattr(obj, "__module__", None) == self.module

    def names(self, obj: Any) -> bool:
        """Return whether the notebook has an object by the name that it says of itself."""
        name = own_name(obj)
        return bool(name) and self.owns(obj) and self.namespace.get(name) is obj

    @cached_property
    def _names(self) -> dict[int, str]:
        return {
            id(value): name
            for name, value in self.namespace.items()
            if isinstance(value, (type, FunctionType))
        }

    def path(self, obj: Any) -> str | None:
        """Return how the program's text reaches this object; None where nothing there leads to
        it."""
        return next((p for p in self.paths(obj) if self.by_text(p.partition(".")[0])), None)

    def paths(self, obj: Any) -> Iterator[str]:
        """Yield how the notebook's names reach this object: by its own, or by another one."""
        root, *rest = obj.__qualname__.split(".")
        found: Any = self.namespace.get(root)
        for attribute in rest:
            found = getattr(found, attribute, None)
        if found is obj:
            yield str(obj.__qualname__)
        if id(obj) in self._names:
            yield self._names[id(obj)]


@dataclass
class Seen:
    """What pickles refer to: names of the notebook, those that functions read when they are called
    (`later`), and modules."""

    names: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    makes_classes: bool = False  # some are in the pickle themselves
    has_gradients: bool = False
    has_nan: bool = False  # or bytes that look like one
    memory: set[Memory] = field(default_factory=set)  # of arrays, as a whole
    copies: list[View] = field(default_factory=list)


class NotebookWriter(Writer):
    """Pickles values of a notebook."""

    def __init__(
        self,
        objects: BinaryIO,
        arrays: BinaryIO,
        *,
        definitions: Definitions,
        seen: Seen,
        entire: Collection[Memory] = (),
    ) -> None:
        super().__init__(objects, arrays)
        self.definitions = definitions
        self.seen = seen
        self.entire = entire

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, FunctionType)):
            return self._definition(obj)
        if isinstance(obj, BuiltinFunctionType):
            self.seen.modules.add(obj.__module__ or "builtins")
            return NotImplemented
        if isinstance(obj, CellType):
            return out_of_band, ("cell",), _contents(obj), None, None, set_cell
        if type(obj).__module__ == "typing" and self.definitions.names(obj):
            self.seen.names.add(obj.__name__)
            return out_of_band, ("notebook", obj.__name__)
        written = reduced(obj)
        if written is not NotImplemented:
            return written
        if is_bound(obj):
            raise Bound(type(obj).__name__)
        found = refusal(obj)
        if found is not None:
            raise found
        if place := self.definitions.packages.place(obj):
            self.seen.modules.add(place[0])
            return out_of_band, ("of package", *place, name_of(type(obj)))
        written = super().reducer_override(obj)
        if written is not NotImplemented:
            self.seen.modules.add(type(obj).__module__)
        if hasattr(type(obj), "_unpickle_model"):
            return keras_object(obj, self.definitions)
        if hasattr(type(obj), "retains_grad"):  # a tensor
            written = obj.__reduce_ex__(4) if written is NotImplemented else written
            self.seen.has_gradients |= obj.is_leaf and obj.grad is not None
            return with_state(obj, written)
        return completed(obj) if written is NotImplemented else written

    def _array(self, array: Any) -> Any:
        return view(array, self) or super()._array(array)

    def _definition(self, obj: Any) -> Any:
        if not self.definitions.owns(obj):
            if type(obj) is not FunctionType or _is_importable(obj):
                self.seen.modules.add(obj.__module__ or "builtins")
                return NotImplemented
            return self._function(obj)
        path = self.definitions.path(obj)
        if path is None:
            if given := self.definitions.given_by(obj):
                made = f"needs `{obj.__qualname__}`, which {given[0]}, line {given[1]} made depend"
                now = " on the world and whose name means something else now,"
                raise Refusal(made + now, "define that and create this in the cell")
            return self._function(obj) if type(obj) is FunctionType else self._class(obj)
        self.seen.names.add(path.partition(".")[0])
        return out_of_band, ("notebook", path)

    def _function(self, function: FunctionType) -> Any:
        code, namespace = function.__code__, function.__globals__
        origin = self.definitions.origins.of(code)
        module = str(namespace.get("__name__", ""))
        if origin is None:
            raise _LocalFunction
        names_here = self.definitions.namespace
        if namespace is names_here or module == self.definitions.module or not module:
            # `%run` leaves functions a namespace without a name, whose names it has copied here.
            read = global_names(code)
            if any(namespace[n] is not names_here.get(n) for n in read & namespace.keys()):
                raise _LocalFunction
            module = ""
            self.seen.later |= read & names_here.keys()
        else:
            self.seen.modules.add(module)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        names = (function.__name__, function.__qualname__)
        made_of = ("function", module, tuple(origin), names, cells)
        return out_of_band, made_of, held(function), None, None, set_function

    def _class(self, cls: type) -> Any:
        is_older = not self.definitions.names(cls)
        if is_older and not is_plain_class(cls):  # its statement makes more of it than attributes
            return self._older_class(cls)
        if type(cls) not in (type, ABCMeta) or issubclass(cls, tuple):
            raise _LocalFunction
        self.seen.makes_classes = True
        made_of = ("class", type(cls), cls.__name__, cls.__bases__, made_with(cls))
        state = {name: _inherited(cls, name, value) for name, value in attributes(cls)}
        return out_of_band, made_of, state, None, None, set_class

    def _older_class(self, cls: type) -> Any:
        if outer := outer_of(cls):
            return getattr, (outer, cls.__name__)
        known = self.definitions.older
        older = known.of(cls) if known else None
        if known is None or older is None:
            if known and known.history.of(cls.__name__):
                what = f"is of an older class `{cls.__name__}`, which its cell's text makes no more"
                raise Refusal(what, "create it in the cell")
            raise _LocalFunction
        self.seen.makes_classes = True
        uses = [u for u in older.statement.names().needs.values() if u.name in known.namespace]
        self.seen.names.update(
            u.name for u in uses if u.at_once and u.name not in older.older_names
        )
        self.seen.later.update(u.name for u in uses if not u.at_once)
        made_of = ("older class", tuple(older.text), older.older_names, older.bases)
        return out_of_band, made_of, state_of_class(cls), None, None, set_older_class


class _Inherited:
    """What a class has from a base as its own attribute: `A.tags = old` after `old = A.tags`.
    Written out it would be another object than the base's."""

    def __init__(self, base: type, name: str) -> None:
        self._parts = base, name

    def __reduce__(self) -> Any:
        return getattr, self._parts


def _inherited(cls: type, name: str, value: Any) -> Any:
    bases = (base for base in cls.__mro__[1:] if type(value) in (list, dict, set))
    base = next((base for base in bases if vars(base).get(name) is value), None)
    return _Inherited(base, name) if base else value


def _contents(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()


def _is_importable(function: FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__ or "")
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


class _NaNWriter(NaNIdentity, NotebookWriter):
    """Keeps NaNs one object too."""


class _Counter(io.RawIOBase):
    """A file that only counts its bytes, and may sum them up in a digest."""

    def __init__(self, limit: int | None = None, *, by_digest: bool = False) -> None:
        self.size = 0
        self.limit = limit
        self.has_nan = False
        self.sum = hashlib.sha256() if by_digest else None

    def write(self, data: Any) -> int:
        if isinstance(data, bytes):  # arrays are not
            self.has_nan = self.has_nan or may_hold_nan(data)
        size = memoryview(data).nbytes
        self.size += size
        if self.limit is not None and self.size > self.limit:
            raise _TooLarge
        if self.sum is not None:
            self.sum.update(data)
        return size

    def tell(self) -> int:
        return self.size


@dataclass(frozen=True)
class PickleTrial:
    """The result of trying to pickle a value.

    `size` is in bytes, at least that where `complete` is false. `problem` says why the value
    can't travel; `local_function` that it holds a function which only its statement can make;
    `bound` names the type of an object inside that belongs to one process. `digest` changes when
    any part of the value does; it is empty where nobody asks for it.
    """

    size: int
    seen: Seen
    complete: bool = True
    local_function: bool = False
    bound: str = ""
    problem: PickleProblem | None = None
    digest: str = ""


def try_value(name: str, value: Any, definitions: Definitions, limit: int) -> PickleTrial:
    """Pickle a value without keeping the result."""
    seen = Seen()
    by_digest = definitions.by_digest
    objects, arrays = _Counter(limit, by_digest=by_digest), _Counter(by_digest=by_digest)
    try:
        writer = NotebookWriter(objects, arrays, definitions=definitions, seen=seen)  # type: ignore[arg-type]
        writer.dump(value)
        seen.memory.update(writer.storages)
        seen.copies += writer.copies
        seen.has_nan = objects.has_nan
    except _TooLarge:
        return PickleTrial(objects.size + arrays.size, seen, complete=False)
    except _LocalFunction:
        return PickleTrial(0, seen, local_function=True, problem=_problem(name, value, definitions))
    except Bound as bound:
        return PickleTrial(0, seen, bound=bound.kind, problem=_problem(name, value, definitions))
    except Exception:
        return PickleTrial(0, seen, problem=_problem(name, value, definitions))
    digest = "".join(file.sum.hexdigest()[:16] for file in (objects, arrays) if file.sum)
    return PickleTrial(objects.size + arrays.size, seen, digest=digest)


def _problem(name: str, value: Any, definitions: Definitions) -> PickleProblem:
    def failure(obj: Any) -> Exception | None:
        writer = NotebookWriter(_Counter(), _Counter(), definitions=definitions, seen=Seen())  # type: ignore[arg-type]
        try:
            writer.dump(obj)
        except Exception as error:
            return error
        return None

    path, culprit = innermost(name, value, failure)
    error = failure(culprit) or failure(value)
    kind = type(culprit).__name__
    if isinstance(error, Refusal):
        return PickleProblem(path, kind, error.reason, error.advice)
    if isinstance(error, _LocalFunction):
        what = f"holds {getattr(culprit, '__qualname__', kind)}, which has no name of its own"
        return PickleProblem(path, kind, what, "define it with `def` at the top level of a cell")
    text = reason(error) if error else "pickle refuses it"
    return PickleProblem(path, kind, f"is not picklable ({text})", GENERAL_ADVICE)


def encode(
    values: Mapping[str, Any],
    definitions: Definitions,
    objects: BinaryIO,
    arrays: BinaryIO,
    entire: Collection[Memory],
    *,
    has_nan: bool,
) -> Index:
    """Write values of the notebook; what they share stays shared, as do arrays the `entire` memory
    that is written, and NaNs where there are any."""
    kind = _NaNWriter if has_nan else NotebookWriter
    writer = partial(kind, definitions=definitions, seen=Seen(), entire=entire)
    return write(values, objects, arrays, together=True, writer=writer)
