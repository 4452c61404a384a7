"""The values that a program carries, as the files that hold them.

Which lists, dicts and sets something else refers to: written out, each would be another one.

Which of them start TensorFlow's runtime when a rank makes them.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.program import ByteCounter, CountedMemory, Data
from distrain_nb.program.values.pickling import encode
from distrain_nb.worker.files.disk import readable_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from distrain_nb.program.gathering.arrange import PreludeItem
    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.resolve import Needed

CHANGING = (list, dict, set)
_DEEPEST = 4


def shared_names(namespace: Mapping[str, Any], held: Iterable[int] = ()) -> set[str]:
    """Return the names of lists, dicts and sets that more than the name refers to, or to a part of
    which more does than what it is in. To be called before anything else holds them but what has
    `held` some, by their identities."""
    ours = Counter(held)
    names = [n for n in namespace if type(namespace[n]) in (*CHANGING, tuple)]
    return {
        name
        for name in names
        if _is_shared(namespace, name, ours[id(namespace[name])])
        or _shares(namespace[name], _DEEPEST)
    }


def _shares(holder: Any, depth: int) -> bool:
    """Return whether more than the holder refers to something that it holds."""
    return any(
        _is_shared(holder, key)
        or (type(holder[key]) in (list, dict, tuple) and depth and _shares(holder[key], depth - 1))
        for key in _keys(holder)
    )


def _keys(holder: Any) -> Iterator[Any]:
    if isinstance(holder, (list, tuple)):
        yield from range(len(holder))
    elif isinstance(holder, dict):
        yield from holder


def _is_shared(holder: Any, key: Any, more: int = 0) -> bool:
    return type(holder[key]) in CHANGING and _references(holder, key) > _ALONE + more


def _references(holder: Any, key: Any) -> int:
    return sys.getrefcount(holder[key])


_ALONE = _references({"": []}, "")  # which depends on the version of Python


def data_of(
    gathering: Gathering, items: Iterable[PreludeItem], limit: int
) -> tuple[Data | None, list[Finding]]:
    """Return the files of the values that are no literals; past `limit`, in bytes, a finding
    instead."""
    carried = [gathering.found[p.name] for p in items if not p.executed and p.literal is None]
    sizes = {n.name: n.trial.size for n in carried if n.trial}
    too_large = _too_large(carried, sum(sizes.values()), limit)
    if too_large or not carried:
        return None, too_large
    meter = ByteCounter("copying values", sum(sizes.values()))
    objects, arrays = CountedMemory(meter), CountedMemory(meter)
    values = {needed.name: needed.value for needed in carried}
    memory = {part for n in carried if n.trial for part in n.trial.seen.memory}
    index = encode(values, gathering.definitions, objects, arrays, memory)
    return Data(index.to_json(), objects.getvalue(), arrays.getvalue()), []


def _too_large(carried: Sequence[Needed], total: int, limit: int) -> list[Finding]:
    if total <= limit and all(n.trial is None or n.trial.complete for n in carried):
        return []
    largest = sorted(carried, key=lambda n: -(n.trial.size if n.trial else 0))[:3]
    named = [f"`{n.name}` ({_size(n)})" for n in largest]
    gradients = any(n.trial.seen.has_gradients for n in largest if n.trial)
    dropped = " `zero_grad()` drops gradients, which count too." if gradients else ""
    return [
        Finding(
            "capture.too-large",
            Severity.ERROR,
            largest[0].where[0],
            f"the values that the cell needs take {readable_size(total)}, more than the limit of"
            f" {readable_size(limit)}; the largest: {', '.join(named)}.{dropped}"
            " Put large data in a file or bucket and name it with --data NAME=URI, or raise the"
            " limit: %distrain config carry_limit=MIB",
        )
    ]


def _size(needed: Needed) -> str:
    assert needed.trial is not None
    more = "" if needed.trial.complete else "more than "
    return f"{type(needed.value).__name__}, {more}{readable_size(needed.trial.size)}"


_MOST_PARTS = 1_000


def starts_tensorflow(value: object) -> bool:
    """Return whether a value is, or holds, a tensor, variable, dataset or model of TensorFlow.

    Looks into containers, at their first parts; calls nothing of the value's own.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return False
    kinds = tuple(_kinds(tensorflow))
    rest, parts = [value], 0
    while rest and parts < _MOST_PARTS:
        part, parts = rest.pop(), parts + 1
        if isinstance(part, kinds):
            return True
        if type(part) is dict:
            rest += list(part.values())[:_MOST_PARTS]
        elif type(part) in (list, tuple, set):
            rest += list(part)[:_MOST_PARTS]  # type: ignore[call-overload]
    return False


def _kinds(tensorflow: Any) -> list[type]:
    kinds = [
        tensorflow.Tensor,
        tensorflow.Variable,
        tensorflow.SparseTensor,
        tensorflow.RaggedTensor,
        tensorflow.Module,
        tensorflow.data.Dataset,
    ]
    keras = sys.modules.get("keras")
    kinds += [keras.layers.Layer] if keras else []
    return [kind for kind in kinds if isinstance(kind, type)]
