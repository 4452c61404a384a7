"""Checks of this machine: what the package can use, and how to install what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from distrain_nb.backends.checks import Check, Health
from distrain_nb.health import machine, notebooks
from distrain_nb.health.backends import backends
from distrain_nb.program.progress import report

__all__ = ["Check", "Health", "Report", "doctor"]

SIGNS = {Health.GOOD: "✓", Health.MISSING: "–", Health.BROKEN: "✕"}


@dataclass(frozen=True)
class Report:
    """The checks by topic; prints as text, and shows as a table in a notebook."""

    topics: tuple[tuple[str, tuple[Check, ...]], ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """All of them."""
        return tuple(check for _, checks in self.topics for check in checks)

    def __repr__(self) -> str:
        width = max(len(check.subject) for check in self.checks)
        return "\n\n".join(
            "\n".join([topic, *(line for check in checks for line in _lines(check, width))])
            for topic, checks in self.topics
        )

    def _repr_html_(self) -> str:
        rows = "".join(_html(topic, checks) for topic, checks in self.topics)
        return f"<table>{rows}</table>"


def doctor() -> Report:
    """Look at this machine, and ask the clouds whose login is here what it may do. Starts and
    changes nothing, and reports what it looks at."""
    here = {
        "This machine": machine.local,
        "Notebooks": notebooks.jupyter,
        "Images and rehearsals": machine.containers,
    }
    topics = []
    for topic, checks in here.items():
        report(f"Checking {topic[0].lower()}{topic[1:]}")
        topics.append((topic, tuple(checks())))
    return Report((*topics, *backends()))


def _lines(check: Check, width: int) -> Iterator[str]:
    yield f"  {SIGNS[check.state]} {check.subject:{width}}  {check.result}"
    if check.remedy:
        yield f"    {'':{width}}  {check.remedy}"


def _html(topic: str, checks: tuple[Check, ...]) -> str:
    style = 'style="text-align:left;overflow-wrap:anywhere"'
    name = 'style="text-align:left;overflow-wrap:break-word"'
    rows = "".join(
        f"<tr><td>{SIGNS[check.state]}</td><th {name} scope='row'>{escape(check.subject)}</th>"
        f"<td {style}>{escape(check.result)}{_remedy(check)}</td></tr>"
        for check in checks
    )
    return f"<tr><th colspan='3' {style} scope='colgroup'>{escape(topic)}</th></tr>{rows}"


def _remedy(check: Check) -> str:
    return f"<br><i>{escape(check.remedy)}</i>" if check.remedy else ""
