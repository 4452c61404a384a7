"""Names of a session's ranks that what is sent shares parts with: an optimizer has the parameters
of a model. Sent apart, each would have its own in the ranks, and the optimizer train nothing.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import Needed, Value
from distrain_nb.program.values.pickling import NotebookWriter, Seen
from distrain_nb.repairs import add_option
from distrain_nb.worker.fingerprint import LIVE, has_identity
from distrain_nb.worker.rank.names import NEVER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.ranks import RankNames
    from distrain_nb.program.values.pickling import Definitions

_ATOMS = (type(None), bool, int, float, complex, str, bytes)


def sharing(
    sent: Iterable[Needed], present: Iterable[str], definitions: Definitions
) -> Iterator[tuple[str, str]]:
    """Yield each of the names that ranks have with a value that is sent and shares parts with what
    the notebook has under it."""
    values = [n for n in sent if isinstance(n.how, Value) and not n.root and _has_parts(n.value)]
    others = {name: definitions.namespace.get(name) for name in present} if values else {}
    looked = {n: _Parts(v, definitions) for n, v in others.items() if _has_parts(v)}
    for needed in values if looked else ():
        parts = _Parts(needed.value, definitions)
        for name in [name for name in looked if parts.meet(looked[name], definitions)]:
            del looked[name]
            yield name, needed.name


def _has_parts(value: Any) -> bool:
    return type(value) not in _ATOMS and not isinstance(value, type)


class _Parts:
    """What a pickle of a value has of things that can be told apart, and of memory."""

    def __init__(self, value: Any, definitions: Definitions) -> None:
        self.objects: dict[int, Any] = {}
        writer = NotebookWriter(_Nowhere(), _Nowhere(), definitions=definitions, seen=Seen())
        try:
            writer.dump(value)
        except Exception:  # it isn't sent
            return
        # They stay alive, so that none has the identity of one before.
        self.objects = {id(obj): obj for _, obj in writer.memo.copy().values()}
        self.memory = {*writer.storages, *(view.memory for view in writer.copies)}
        self._writer = writer

    def meet(self, other: _Parts, definitions: Definitions) -> bool:
        """Return whether both have one part."""
        if not self.objects or not other.objects:
            return False
        if any(size for _, size in self.memory & other.memory):
            return True
        both = (self.objects[key] for key in self.objects.keys() & other.objects.keys())
        return any(_can_be_two(obj) and not definitions.packages.place(obj) for obj in both)


def _can_be_two(obj: Any) -> bool:
    """Return whether it matters that two have the same: one could see what the other changes."""
    if type(obj) is tuple or not has_identity(obj):
        return False
    return type(obj).__module__.partition(".")[0] not in LIVE


class _Nowhere(io.BytesIO):
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def send_together(
    gathering: Gathering, sent: Collection[str], names: RankNames
) -> tuple[set[str], list[Finding]]:
    """Ask for the names that share parts with what is sent; return them, and errors about those
    that the ranks have set."""
    more, findings = set[str](), dict[str, Finding]()
    gathered, upcoming = gathering.found, {*sent}
    while upcoming:
        present = [n for n in names.received() if n not in {*sent, *more, *findings}]
        of_these = (gathered[name] for name in sorted(upcoming) if name in gathered)
        pairs = [*sharing(of_these, present, gathering.definitions)]
        upcoming = set()
        for name, by in pairs:
            where = gathered[by].where[0]
            latest = names.latest(name)
            if latest["set"] == NEVER or name in names.sends:
                gathering.want_name(name, where)
                upcoming.add(name)
            elif name not in names.keeps and (latest.get("in_place") or not latest["same"]):
                findings[name] = _apart(name, by, where, latest, names.session)
        gathering.run()
        upcoming &= gathered.keys()
        more |= upcoming
    return more, [*findings.values()]


def _apart(name: str, by: str, where: str, latest: Mapping[str, Any], session: str) -> Finding:
    message = (
        f"`{by}` is sent and shares parts with `{name}`, which the ranks of session {session} have "
        f"set ({latest['cell']}): they would be apart there. Create `{by}` in a cell of the "
        f"session, or --send {name} sends both; --keep {name} leaves them apart"
    )
    fixes = (add_option(f"--send {name}"), add_option(f"--keep {name}"))
    return Finding("capture.both-set", Severity.ERROR, where, message, fixes)
