"""The faults of a rehearsal: `preempt=workerpool1-0@30s,late=2s`, `spot=algo-2@30s`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from distrain_nb.errors import OptionError

_LATE_EVERY = 7
_SECONDS = r"(\d+(?:\.\d+)?)s?"


@dataclass(frozen=True)
class FaultSyntax:
    """The syntax of a service's faults: name of a preemption, names of replicas, permissions, and
    of machines that may have no capacity (empty: none)."""

    loss: str
    replica: str
    permission: str
    allowed: str
    machine: str = ""


@dataclass(frozen=True)
class Preemption:
    """A replica (`workerpool1-0`) loses its machine so many seconds into the job, or when any
    replica has printed a line with the text."""

    replica: str
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Faults:
    """`quota` is a metric that is used up, `permission` one that the caller (or the job) lacks;
    machines of the types `full` have no capacity.

    Every seventh log entry can be read only `late` seconds after it was written, every `busy`-th
    call for log entries is turned away, and of the first `lost` jobs that are created the caller
    gets no answer.
    """

    preemptions: tuple[Preemption, ...] = ()
    quota: str = ""
    full: tuple[str, ...] = ()
    permission: str = ""
    late: float = 0.0
    busy: int = 0
    lost: int = 0

    def delay(self, number: int) -> float:
        """Return how many seconds after it was written the log entry of that number can be read."""
        return self.late if number % _LATE_EVERY == _LATE_EVERY - 1 else 0.0

    @classmethod
    def parse(cls, text: str, syntax: FaultSyntax) -> Faults:
        """Read what follows `--rehearse`. Raises OptionError naming what is not allowed."""
        faults = cls()
        for part in filter(None, (part.strip() for part in text.split(","))):
            faults = _with(faults, part, syntax)
        return faults


def _with(faults: Faults, part: str, syntax: FaultSyntax) -> Faults:
    name, _, value = part.partition("=")
    loss = re.fullmatch(f"({syntax.replica})@(.+)", value)
    seconds = re.fullmatch(_SECONDS, value)
    moment = re.fullmatch(_SECONDS, loss[2]) if loss else None
    if name == syntax.loss and loss:
        at = {"seconds": float(moment[1])} if moment else {"text": loss[2]}
        preemption = Preemption(loss[1], **at)
        return replace(faults, preemptions=(*faults.preemptions, preemption))
    changes: dict[str, Any] = {}
    if name == "late" and seconds:
        changes[name] = float(seconds[1])
    elif name == "full" and syntax.machine and re.fullmatch(syntax.machine, value):
        changes[name] = (*faults.full, value)
    elif name in ("busy", "lost") and value.isdigit():
        changes[name] = int(value)
    elif (name == "quota" and value) or (
        name == "permission" and re.fullmatch(syntax.permission, value)
    ):
        changes[name] = value
    if changes:
        return replace(faults, **changes)
    raise OptionError(f"invalid --rehearse {part!r}: expected {syntax.allowed}")
