"""What must hold of a layout, as a table of small functions, and the repairs of what doesn't."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.resolved import resolve

# importing them registers their rules
from distrain_nb.layout.rules import machines, numbers, positions, unread  # noqa: F401
from distrain_nb.layout.rules.engine import (
    Edit,
    Rule,
    Trials,
    all_problems,
    all_rules,
    finding,
    grouped,
)

__all__ = ["Edit", "Rule", "all_rules", "check", "findings"]

_ORDER = list(Severity)


def check(
    layout: Layout, channels: Iterable[str] = (), framework: str | None = None
) -> tuple[Finding, ...]:
    """Return everything that is wrong with a layout, errors first, each with the repairs that work.

    `channels` are the names of the job's inputs, which some places limit; `framework` is the one
    that its program imports. What is wrong in the same way with several pools is one finding.
    Whatever the layout holds, nothing is raised.
    """
    return tuple(findings(layout, channels, framework))


def findings(
    layout: Layout,
    channels: Iterable[str] = (),
    framework: str | None = None,
    chooses: Callable[[Rule], bool] = lambda _: True,
) -> Iterator[Finding]:
    """Yield what `check` returns, of the rules that a function chooses. Repairs are tried as each
    is taken, which is most of the work."""
    job = resolve(layout, channels, implied=framework)
    problems = tuple(all_problems(job))
    trials = Trials(job, problems)
    for rule, alike in sorted(grouped(problems), key=lambda pair: _ORDER.index(pair[0].severity)):
        if chooses(rule):
            yield finding(trials, rule, alike)
