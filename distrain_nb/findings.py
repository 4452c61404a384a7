"""One shape for everything that can be wrong: with a layout, a cell, an image or a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Severity(str, Enum):
    """How much a finding matters: an error stops a submission, the others don't."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Fix(Generic[T]):
    """A repair that code can apply: `apply` takes the faulty value and gives a repaired one."""

    label: str
    apply: Callable[[T], T] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and how it can be put right.

    `code` is stable and can be searched for; `where` names the place as the user wrote it
    (`primary.accelerator_count`, `line 4`); `message` is a plain sentence that names the value
    and what is allowed; `fixes` are ranked, the smallest change first; `also` are other places
    where the very same is wrong, which the fixes put right too.
    """

    code: str
    severity: Severity
    where: str
    message: str
    fixes: tuple[Fix[Any], ...] = ()
    also: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """All the places; empty for a finding that has none."""
        return (self.where, *self.also) if self.where else ()

    def __str__(self) -> str:
        return f"{self.severity}: {self.described}"

    @property
    def described(self) -> str:
        """The places, what is wrong there, and the code to search for."""
        place = f"{', '.join(self.places)}: " if self.where else ""
        return f"{place}{self.message}{f' [{self.code}]' if self.code else ''}"


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that stop a submission."""
    return tuple(f for f in findings if f.severity is Severity.ERROR)
