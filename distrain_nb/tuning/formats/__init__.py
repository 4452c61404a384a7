"""Studies in the forms of their places: exact texts to copy, and the same forms read back."""

from __future__ import annotations

from distrain_nb.errors import OptionError, did_you_mean, shown
from distrain_nb.tuning import options
from distrain_nb.tuning.formats.pieces import ImportedStudy
from distrain_nb.tuning.formats.python import has_study
from distrain_nb.tuning.formats.reading import read_study, read_study_file
from distrain_nb.tuning.place import StudyForm, study_place, study_places

__all__ = [
    "ImportedStudy",
    "StudyForm",
    "all_forms",
    "form_of",
    "forms_of",
    "has_study",
    "read_study",
    "read_study_file",
]

_YAML = StudyForm("yaml", "YAML", options.to_yaml)


def forms_of(place: str) -> tuple[StudyForm, ...]:
    """Return the forms of a place's studies."""
    here = study_place(place)
    return (*(here.forms if here else ()), _YAML)


def all_forms() -> tuple[StudyForm, ...]:
    """Return the forms of all places."""
    return (*(form for place in study_places() for form in place.forms), _YAML)


def form_of(name: str) -> StudyForm:
    """Return the form of a name. Raises OptionError with those that there are."""
    forms = {form.name: form for form in all_forms()}
    if name not in forms:
        hint = did_you_mean(name, forms, ".")
        raise OptionError(f"no form {shown(name)}{hint} There are {', '.join(forms)}")
    return forms[name]
