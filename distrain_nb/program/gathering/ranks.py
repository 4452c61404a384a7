"""What the ranks of a session have, and which names of the notebook a cell for them still needs.

What a cell made in the ranks stays in the ranks; what the notebook has set since is sent. Both are
placed by the order in which the kernel executes cells: those of the notebook, and those that it
sends to the session.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import Import, Literal, Needed, PendingName, SourceCode
from distrain_nb.program.gathering.together import send_together
from distrain_nb.program.gathering.undone import AS_AT_FIRST, roots_undone, send_undone
from distrain_nb.repairs import add_option
from distrain_nb.worker.files.session import NamesSent
from distrain_nb.worker.fingerprint import fingerprint
from distrain_nb.worker.rank.names import NEVER, same_text

if TYPE_CHECKING:
    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import ExecutionHistory

Table = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class RankNames:
    """The names of the ranks that a cell is for, each rank's by its number.

    `at` is the cell's place among the cells that the kernel has executed. `sends` are names that
    the notebook gives whatever the ranks have, `keeps` those that the ranks keep.
    """

    session: str
    tables: Mapping[int, Table]
    kernel: str
    at: int
    sends: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    _names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        every = frozenset(name for table in self.tables.values() for name in table)
        object.__setattr__(self, "_names", every)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def reads(self, name: str) -> set[str]:
        """Return the global names that a function of the ranks reads."""
        return {read for entry in self._entries(name) for read in entry.get("reads", ())}

    def received(self) -> Iterator[str]:
        """Yield the names that the notebook has sent at any time."""
        tables = self.tables.values()
        yield from {n for t in tables for n, entry in t.items() if entry["sent"] != NEVER}

    def latest(self, name: str) -> Mapping[str, Any]:
        """Return the entry of the rank that has set a name last."""
        return max(self._entries(name), key=lambda entry: int(entry["set"]))

    def digests(self, name: str) -> set[str]:
        """Return the digests of what was sent under a name."""
        return {entry["digest"] for entry in self._entries(name) if entry["sent"] != NEVER}

    def missing(self, name: str) -> list[int]:
        """Return the ranks that lack a name which others have."""
        has = [rank for rank, table in self.tables.items() if name in table]
        return [rank for rank in self.tables if rank not in has] if has else []

    def stays(self, name: str, namespace: Mapping[str, Any], history: ExecutionHistory) -> bool:
        """Return whether a cell takes a name as the ranks have it. Raises BothSet."""
        entries = self._entries(name)
        if not entries or name in self.sends:
            return False
        if name in self.keeps or name not in namespace:
            return True
        latest = self.latest(name)
        if latest["set"] == NEVER:
            return False
        text = same_text(namespace[name])
        if text and all(entry["same"] == text for entry in entries):
            return True
        binding = next(iter(history.of(name)), None)
        bound_at = binding.at[0] if binding else NEVER
        if latest["kernel"] != self.kernel or bound_at > latest["set"]:
            raise BothSet(self._both_set(name, latest, binding.statement.where if binding else ""))
        return True

    def _both_set(self, name: str, latest: Mapping[str, Any], where: str) -> str:
        line = f", line {latest['line']}" if latest["line"] else ""
        here = f" ({where})" if where else ""
        there = f" ({latest['cell']}{line})" if latest["cell"] else ""
        return (
            f"`{name}` was set in the notebook{here} and in the ranks of session "
            f"{self.session}{there} since it was last the same: --send {name} takes the "
            f"notebook's, --keep {name} the ranks'"
        )

    def has(self, needed: Needed, digest: str, history: ExecutionHistory) -> bool:
        """Return whether all ranks have what the notebook would send."""
        if {needed.name, needed.root} & self.sends:
            return False
        entries = self._entries(needed.name)
        if len(entries) < len(self.tables):
            return False
        if needed.name.endswith("()") and ":" in needed.name:
            return True  # it changes by use, on both sides
        binding = next(iter(history.of(needed.name)), None)
        bound_at: float = binding.at[0] if binding else NEVER
        return all(
            entry["sent"] != NEVER
            and entry["digest"] == digest
            and (entry["kernel"] != self.kernel or bound_at <= entry["sent"])
            for entry in entries
        )

    def _entries(self, name: str) -> list[Mapping[str, Any]]:
        return [table[name] for table in self.tables.values() if name in table]


class BothSet(Exception):
    """The notebook and the ranks have both set a name."""


class Settled(NamedTuple):
    """Whether a name is settled by what the ranks have; what there is to say, and which names a
    function of the ranks reads, which the notebook may have set since."""

    stays: bool
    findings: Sequence[Finding] = ()
    reads: Sequence[PendingName] = ()


def settle(notebook: Notebook, pending: PendingName, history: ExecutionHistory) -> Settled:
    """Return what becomes of a name that a cell reads, if it is for the ranks of a session."""
    ranks, namespace, name = notebook.ranks, notebook.namespace, pending.name
    try:
        if ranks is None or name in notebook.given or not ranks.stays(name, namespace, history):
            return Settled(stays=False)
    except BothSet as error:
        return Settled(stays=True, findings=[both_set(pending.where, name, error)])
    findings = []
    missing = ranks.missing(name) if pending.required else []
    if missing:
        message = (
            f"rank {', '.join(map(str, missing))} lacks `{name}`, which other ranks of session "
            f"{ranks.session} have: run the cell that makes it there too, or choose ranks with "
            "--rank"
        )
        findings = [Finding("capture.not-in-all-ranks", Severity.ERROR, pending.where, message)]
    reads = sorted(ranks.reads(name) & namespace.keys())
    return Settled(
        stays=True,
        findings=findings,
        reads=[PendingName(read, pending.where, required=False) for read in reads],
    )


def leave_out(gathering: Gathering, names: RankNames) -> NamesSent:
    """Take out of what was gathered all that the ranks have already; return what is sent."""
    history, digests, files = gathering.history, dict[str, str](), _files(gathering)

    def unlike() -> set[str]:
        new = {n: needed for n, needed in gathering.found.items() if n not in digests}
        digests.update(
            {n: digest_of(needed) + _files_of(needed, files) for n, needed in new.items()}
        )
        every = gathering.found.items()
        return {n for n, needed in every if not names.has(needed, digests[n], history)}

    together, apart = send_together(gathering, unlike(), names)
    gathering.findings += apart
    undone = send_undone(gathering, names, digests)
    which = unlike() | together | undone | roots_undone(gathering.found, names)
    # What stands for a name that is sent anew belongs to it: weights, attributes.
    which |= {name for name, needed in gathering.found.items() if needed.root in which}
    sent = {n: AS_AT_FIRST if n in undone - digests.keys() else digests[n] for n in which}
    gathering.found = {name: needed for name, needed in gathering.found.items() if name in sent}
    repeated = []
    for needed in gathering.repeated:
        key = f"statement {needed.name}"
        digest = digest_of(needed)
        if not names.has(replace(needed, name=key), digest, history):
            repeated.append(needed)
            sent[key] = digest
    gathering.repeated = repeated
    gathering.findings += _overwritten(gathering.found.values(), sent, names)
    return NamesSent(names.kernel, names.at, sent, tuple(sorted(names.keeps)))


def _files(gathering: Gathering) -> dict[str, str]:
    """Return a text for each module beside the notebook that changes when any of their files does:
    one may import the other."""
    paths = [getattr(sys.modules.get(name), "__file__", None) for name in gathering.modules]
    texts = gathering.world.modules.texts
    every = hashlib.sha256()
    for path in sorted(Path(path).absolute() for path in paths if path):
        with suppress(OSError):
            every.update(texts.get(path) or path.read_bytes())
    return dict.fromkeys(gathering.modules, every.hexdigest()[:16])


def _files_of(needed: Needed, files: Mapping[str, str]) -> str:
    if not isinstance(needed.how, Import):
        return ""
    is_module = isinstance(needed.value, ModuleType)
    return files.get(
        needed.value.__name__ if is_module else str(needed.how.statements[0].split()[1]), ""
    )


def _overwritten(
    sent: Iterable[Needed], names: Collection[str], ranks: RankNames
) -> Iterator[Finding]:
    """Yield an error for each name that a statement would set besides those that are wanted, and
    that ranks have set."""
    for needed in sent:
        chain = needed.how.chain if isinstance(needed.how, SourceCode) else ()
        for executed in chain:
            for name in sorted(executed.statement.binds - {*names} - ranks.sends):
                entries = [e for e in ranks._entries(name) if e["set"] != NEVER]
                if entries:
                    message = (
                        f"`{needed.name}` is sent by its statement, which also sets `{name}`, and "
                        f"the ranks of session {ranks.session} have set that ({entries[0]['cell']})"
                        f": --keep {needed.name} leaves both as the ranks have them, --send {name} "
                        "sends both"
                    )
                    where = executed.statement.where
                    yield Finding("capture.both-set", Severity.ERROR, where, message)


def both_set(where: str, name: str, error: BothSet) -> Finding:
    """Return the finding about a name that both have set, with the two repairs."""
    fixes = (add_option(f"--send {name}"), add_option(f"--keep {name}"))
    return Finding("capture.both-set", Severity.ERROR, where, str(error), fixes)


def digest_of(needed: Needed) -> str:
    """Return a text that changes when what is sent of a name does."""
    how = needed.how
    if isinstance(how, Import):
        text = "\n".join((*how.statements, same_text(needed.value)))
    elif isinstance(how, Literal):
        text = how.text
    elif isinstance(how, SourceCode):
        text = "\n".join(f"{e.at} {e.statement.text}" for e in how.chain)
    elif needed.trial is not None and needed.trial.digest:
        return needed.trial.digest  # of its pickle, which has all that ranks would get
    else:
        return digest(needed.name, needed.value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digest(name: str, value: Any) -> str:
    """Return a text that changes when a value is another, or has changed in place."""
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    parts = fingerprint(name, value, {"__main__"})
    if not any(parts.values()):
        return f"object {id(value)}"
    text = "\0".join(f"{path}\1{part}" for path, part in sorted(parts.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
