"""Whether values can be read again from their pickles, and what they lack then.

Question runs code of the user's classes, and their copies end. So it happens in a fork.
"""

from __future__ import annotations

import io
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import is_package
from distrain_nb.program.values.forked import in_fork
from distrain_nb.program.values.pickling import Definitions, NotebookWriter, Seen
from distrain_nb.program.values.refusals import LostPart, PickleProblem, innermost
from distrain_nb.worker.fingerprint import PASSED_OVER, fingerprint
from distrain_nb.worker.functions import set_class
from distrain_nb.worker.older_classes import OtherClass
from distrain_nb.worker.pickles import Reader, Restoring
from distrain_nb.worker.rank.expected import shown
from distrain_nb.worker.rank.values import reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIMIT_S = 5.0
_CREATE = "create it in the cell"
_READABLE = "let its class define __reduce__, or create it in the cell"
# Question values of these alone runs nobody's code.
_PLAIN = {"builtins", "numpy", "numpy.dtypes", "torch", "torch.nn.parameter"}
# Their threads are not in a fork, which would wait for them.
_THREADED = {"jax", "jaxlib", "tensorflow", "keras", "tf_keras"}
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code has made
_END = re.compile(r"(?<=.)[.\[]")  # of what a part is in
_WHOLE = ("__main__.", "builtins.", "array of", "tensor of", "frame of")


class Copy(NamedTuple):
    """What is known of a value that was read again: why it can't be, or the parts that it lacks."""

    problem: PickleProblem | None
    lost: list[LostPart]


def read_back(values: Mapping[str, tuple[Any, Seen]], definitions: Definitions) -> dict[str, Copy]:
    """Read pickled values in a fork, and return what is known of each: nothing of those whose
    reading runs no code, nor where the fork fails. Ranks read them all the same.

    Functions and classes of the notebook stand for themselves.
    """
    to_read = {n: v for n, (v, contents) in values.items() if _runs_code(contents)}
    if not to_read:
        return {}
    work = partial(_read_all, to_read, definitions)
    copies: dict[str, Copy] | None = in_fork(work, _LIMIT_S)
    return copies or {}


def _runs_code(contents: Seen) -> bool:
    roots = {module.partition(".")[0] for module in contents.modules}
    runs = bool(contents.names or contents.modules - _PLAIN or contents.makes_classes)
    return runs and _THREADED.isdisjoint(roots)


def _read_all(values: Mapping[str, Any], definitions: Definitions) -> dict[str, Copy]:
    return {name: _read(name, value, definitions) for name, value in values.items()}


def _read(name: str, value: Any, definitions: Definitions) -> Copy:
    read: list[Any] = []

    def failure(obj: Any) -> Exception | None:
        objects, arrays = io.BytesIO(), io.BytesIO()
        NotebookWriter(objects, arrays, definitions=definitions, seen=Seen()).dump(obj)
        objects.seek(0)
        restoring = _Restoring(bytearray(arrays.getvalue()), definitions.namespace)
        try:
            read[:] = [_Reader(objects, restoring).load()]
        except Exception as error:
            return error
        return None

    error = failure(value)
    if error is None:
        return Copy(None, [*_lost(name, value, read[0], definitions)])
    path, culprit = innermost(name, value, failure)
    if isinstance(error, OtherClass):
        return Copy(PickleProblem(path, type(culprit).__name__, str(error), _CREATE), [])
    why = f"can be pickled but not read again ({type(error).__name__}: {reason(error)})"
    return Copy(PickleProblem(path, type(culprit).__name__, why, _READABLE), [])


def _lost(name: str, value: Any, copy: Any, definitions: Definitions) -> Iterator[LostPart]:
    """Yield the differences of a value that was read again.

    Parts that an object of a package loses don't count, such as a cache.
    """
    before, after = (fingerprint(name, obj, {definitions.module}) for obj in (value, copy))
    for path, text in before.items():
        now = after.get(path, "nothing")
        owners = (before.get(path[: end.start()].split()[-1], "") for end in _END.finditer(path))
        if text != now and PASSED_OVER not in (text, now) and all(map(_is_kept, owners)):
            yield LostPart(path, shown(text), shown(now))


def _is_kept(owner: str) -> bool:
    """Return whether all that an object has should be in its pickle, by the text of its kind."""
    return owner.startswith(_WHOLE) or not is_package(owner.rpartition(".")[0])


# -- copies that end without a word ---------------------------------------------------------------


class _Restoring(Restoring):
    def restore(self, kind: str, *state: Any) -> Any:
        return _without_del(super().restore(kind, *state))


class _Reader(Reader):
    def find_class(self, module: str, name: str) -> Any:
        obj = super().find_class(module, name)
        return _set_class if obj is set_class else _without_del(obj)


def _without_del(obj: Any) -> Any:
    """Take `__del__` from a class in this fork: it may delete the notebook's file, or close what
    the notebook still uses."""
    for cls in obj.__mro__ if isinstance(obj, type) else ():
        if "__del__" in vars(cls) and cls.__flags__ & _HEAP_TYPE:
            type.__delattr__(cls, "__del__")
    return obj


def _set_class(cls: type, state: Mapping[str, Any]) -> None:
    set_class(cls, {name: value for name, value in state.items() if name != "__del__"})
