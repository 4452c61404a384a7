"""What a worker or a carrier says in a log, for programs too: a code, facts, and a sentence.

    distrain[saved seconds=1.5]: saved in 1.5 s
    distrain[failed subject="rank 1" status=-9]: rank 1 failed first: killed by SIGKILL

Carriers decide by code and facts. The sentence is for people, and may be reworded: a worker in an
image is often of another version than the carrier that reads its log.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Iterable, Iterator, Mapping, Optional

HANG, GOES_ON = "hang", "goes-on"
SAVING, SAVED, NOT_SAVED, AGREED = "saving", "saved", "not-saved", "agreed"
ALONE = "alone"
FAILED = "failed"

MARK = "distrain["
_FACT = r' (?P<name>[a-z]+)=(?P<value>"(?:[^"\\]|\\.)*"|[^\s"\]]+)'
_FACTS = re.sub(r"\?P<\w+>", "?:", _FACT)
# A service's lines have the replica's or the rank's name before them.
_FORM = re.compile(
    rf"(?:\[[^\]]*\] )?distrain\[(?P<code>[a-z-]+)(?P<facts>(?:{_FACTS})*)\]: (?P<text>.*)",
    re.DOTALL,
)
_PLAIN = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class CodedLine:
    """A line of a log that says something in a form of its own."""

    code: str
    text: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        facts = "".join(f" {name}={_written(value)}" for name, value in self.facts.items())
        return f"{MARK}{self.code}{facts}]: {self.text}"


def _written(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


def read(line: str) -> Optional[CodedLine]:
    """Return what a line states; None for any other line."""
    match = _FORM.fullmatch(line)
    if not match:
        return None
    try:
        facts = {name: _read(value) for name, value in re.findall(_FACT, match["facts"])}
    except ValueError:  # an escape that JSON doesn't have: nobody of ours wrote it
        return None
    return CodedLine(match["code"], match["text"], facts)


def _read(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value


def coded_lines(lines: Iterable[str]) -> Iterator[CodedLine]:
    """Yield what lines state, in their order."""
    return (stated for stated in map(read, lines) if stated)
