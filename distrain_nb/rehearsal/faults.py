"""What is to go wrong in a rehearsal: `preempt=workerpool1-0@30s,late=2s`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from distrain_nb.errors import OptionError

ALLOWED = (
    "preempt=REPLICA@SECONDSs, quota=METRIC, permission=NAME, late=SECONDSs, busy=EVERY, lost=COUNT"
)
_PREEMPT = re.compile(r"(?P<replica>workerpool\d-\d+)@(?P<seconds>\d+(\.\d+)?)s?")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s?")


@dataclass(frozen=True)
class Preemption:
    """The machine of a replica (`workerpool1-0`) is taken away so many seconds into the job."""

    replica: str
    seconds: float


@dataclass(frozen=True)
class Faults:
    """`quota` is a metric that is used up, `permission` one that the caller lacks.

    Every seventh log entry can be read only `late` seconds after it was written, every `busy`-th
    call for log entries is turned away, and of the first `lost` jobs that are created the caller
    gets no answer.
    """

    preemptions: tuple[Preemption, ...] = ()
    quota: str = ""
    permission: str = ""
    late: float = 0.0
    busy: int = 0
    lost: int = 0

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read what follows `--rehearse`. Raises OptionError naming what is not allowed."""
        faults = cls()
        for part in filter(None, (part.strip() for part in text.split(","))):
            faults = _with(faults, part)
        return faults


def _with(faults: Faults, part: str) -> Faults:
    name, _, value = part.partition("=")
    preempt, seconds = _PREEMPT.fullmatch(value), _SECONDS.fullmatch(value)
    if name == "preempt" and preempt:
        one = Preemption(preempt["replica"], float(preempt["seconds"]))
        return replace(faults, preemptions=(*faults.preemptions, one))
    if name == "late" and seconds:
        return replace(faults, late=float(seconds[1]))
    changes: dict[str, Any] = {}
    if name in ("busy", "lost") and value.isdigit():
        changes[name] = int(value)
    elif name in ("quota", "permission") and value:
        changes[name] = value
    if changes:
        return replace(faults, **changes)
    raise OptionError(f"--rehearse {part!r}: this can't go wrong; allowed are {ALLOWED}")
