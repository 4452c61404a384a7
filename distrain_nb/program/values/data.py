"""The values that a program carries, as the files that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.program import Data
from distrain_nb.program.progress import ByteCounter, CountedMemory
from distrain_nb.program.values.pickling import encode
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.pickles import overlapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from distrain_nb.program.gathering.arrange import PreludeItem
    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.resolve import Needed


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
    pickles = [needed.trial.seen for needed in carried if needed.trial]
    memory = {part for pickle in pickles for part in pickle.memory}
    memory.update(overlapping([view for pickle in pickles for view in pickle.copies]))
    has_nan = any(pickle.has_nan for pickle in pickles)
    index = encode(values, gathering.definitions, objects, arrays, memory, has_nan=has_nan)
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
