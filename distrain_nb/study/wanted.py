"""The spec that options ask for: of a file, in Python, or option by option; checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import CheckFailed, OptionError
from distrain_nb.findings import Finding, Severity, errors
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.formats import read_study_file
from distrain_nb.tuning.options import PARTS, changed, in_cell
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import StudySpec

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    own = {name: options.pop(name) for name in PARTS if name in options}
    made = changed(spec or StudySpec((), ()), own)
    is_whole_grid = spec is None and "trials" not in own and made.search.algorithm == "grid"
    count = combinations(made) if is_whole_grid else None
    return (made if count is None else replace(made, trials=count)), spec is None


def checked(
    spec: StudySpec, place: str, file: object = None, *, written: bool
) -> tuple[Finding, ...]:
    """What is known of a study that can run. Repairs are of the text of a cell, where the study
    is `written` there. Raises CheckFailed for one that can't."""
    found = [
        in_cell(item, spec) if written else replace(item, fixes=()) for item in check(spec, place)
    ]
    if errors(found):
        raise CheckFailed(errors(found))
    return (*found, *(_left_out(str(file)) if file else ()))


def _left_out(file: str) -> Iterator[Finding]:
    """What of a file neither the study nor these options have."""
    imported = read_study_file(file)
    lost = list(imported.left_out)
    if imported.layout is not None:
        lost.append("the machines of its trials, which options lay out")
    if lost:
        message = f"not taken from {file}: {', '.join(lost)}"
        yield Finding("study-left-out", Severity.WARNING, "--study", message)
