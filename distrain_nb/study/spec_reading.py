"""The spec of a study that options ask for: of a file, in Python, or option by option; checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distrain_nb.errors import CheckFailed, OptionError
from distrain_nb.findings import Finding, Severity, errors
from distrain_nb.tuning.choosing import combinations, grid
from distrain_nb.tuning.engine import require
from distrain_nb.tuning.formats import read_study_file
from distrain_nb.tuning.options import PARTS, changed, in_cell
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.tuning.stopping import check as check_stopping


def take_spec(spec: StudySpec | None, options: dict[str, object]) -> tuple[StudySpec, bool]:
    """Return the study that options ask for, which are taken out of them, and whether they say all
    of it. A grid that nothing counts has all its trials.

    Raises OptionError.
    """
    file = options.pop("study", None)
    if file and spec:
        raise OptionError("study and spec: expected one of them")
    if file:
        spec = read_study_file(str(file)).spec
    parts = {name: options.pop(name) for name in PARTS if name in options}
    changed_spec = changed(spec or StudySpec((), ()), parts)
    is_whole_grid = (
        spec is None and "trials" not in parts and changed_spec.search.algorithm == "grid"
    )
    count = combinations(changed_spec) if is_whole_grid else None
    return (changed_spec if count is None else replace(changed_spec, trials=count)), spec is None


def check_study(
    spec: StudySpec, place: str, file: object = None, *, written: bool
) -> tuple[Finding, ...]:
    """Return the findings about a study that can run. Repairs are of the text of a cell, where the
    study is `written` there. Raises CheckFailed for one that can't."""
    findings = [
        in_cell(item, spec) if written else replace(item, fixes=()) for item in check(spec, place)
    ]
    if errors(findings):
        raise CheckFailed(errors(findings))
    return (*findings, *(_left_out(str(file)) if file else ()))


def _left_out(file: str) -> Iterator[Finding]:
    """Yield a warning about parts of a file that neither the study nor these options have."""
    imported = read_study_file(file)
    lost = list(imported.left_out)
    if imported.layout is not None:
        lost.append("the machines of its trials, which options lay out")
    if lost:
        message = f"not taken from {file}: {', '.join(lost)}"
        yield Finding("study-left-out", Severity.WARNING, "--study", message)


def check_here(spec: StudySpec) -> None:
    """Raise OptionError or DistrainError for what no rule says of this machine."""
    require("optuna", "a study on this machine")
    check_stopping(spec.stopping, len(spec.goals))
    if spec.search.algorithm == "grid":
        grid(spec)
