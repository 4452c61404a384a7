"""Why a run has failed, as facts: what decides anything reads these, and sentences are for people.

Earlier versions of the package wrote none. A run without a cause counts as one whose program failed
by itself: nothing is tried again for it.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

PROGRAM = "program"  # an error of the program's own
EXIT = "exit"  # a process ended by a signal or with a status, and said no more
MEMORY = "memory"  # its machine had no more memory, and killed it
NEAR_LIMIT = "near-limit"  # it was told that its time limit is near, and has ended
STOPPED = "stopped"  # ranks of another machine were asked to end
SUPERVISOR = "supervisor"  # its supervisor has ended by an error of its own, or was killed
ORPHANED = "orphaned"  # nobody answers for it any more


@dataclass(frozen=True)
class Cause:
    """The failure that caused the other failures of a run.

    `kind` is one of this module's names. `subject` is who failed (`rank 1`, `the launcher`; empty
    for the run). `status` is the exit status as subprocess has it, None if no process ended.
    `summary` describes the failure in words.
    """

    kind: str = PROGRAM
    subject: str = ""
    status: Optional[int] = None
    summary: str = ""

    @property
    def was_killed(self) -> bool:
        """Whether somebody probably killed the process, so that the end says nothing about the
        program."""
        return self.kind == EXIT and self.status == -signal.SIGKILL

    @property
    def is_of_supervisor(self) -> bool:
        """Whether the end of the supervisor is what ended the run, not anything that it did."""
        return self.kind in (SUPERVISOR, ORPHANED)

    def facts(self) -> Dict[str, str]:
        """Return it as a coded line has it."""
        facts = {"kind": self.kind}
        if self.subject:
            facts["subject"] = self.subject
        if self.status is not None:
            facts.update(status=str(self.status), summary=self.summary)
        return facts

    @classmethod
    def of_facts(cls, facts: Mapping[str, str]) -> Cause:
        """Return the cause that a coded line has. A status that is none, as a program may print
        such a line too, counts as not known."""
        text = facts.get("status", "")
        status = int(text) if re.fullmatch(r"-?\d{1,9}", text) else None
        kind = facts.get("kind", PROGRAM)
        return cls(kind, facts.get("subject", ""), status, facts.get("summary", ""))
