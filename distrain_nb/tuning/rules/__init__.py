"""Rules for studies, with repairs: those that hold everywhere, and those of a place."""

from __future__ import annotations

from distrain_nb.findings import Finding
from distrain_nb.tuning.rules.parameters import parameter_findings
from distrain_nb.tuning.rules.places import place_findings
from distrain_nb.tuning.rules.study import study_findings
from distrain_nb.tuning.spec import StudySpec


def check(spec: StudySpec, place: str) -> tuple[Finding, ...]:
    """Check a study that is to run at a place, one of `layout.PLACES`.

    Repairs take and give a `StudySpec`. What the place can't do is an error; what it leaves out is
    a warning that names it.
    """
    return (
        *parameter_findings(spec),
        *study_findings(spec),
        *place_findings(spec, place),
    )
