"""Studies read from the forms of their places, or from their own YAML."""

from __future__ import annotations

import json

from distrain_nb.config import text_named
from distrain_nb.errors import OptionError
from distrain_nb.layout.yaml_reading import check_length, yaml_texts
from distrain_nb.tuning import options
from distrain_nb.tuning.formats.pieces import ImportedStudy
from distrain_nb.tuning.formats.python import has_study, study_from_python
from distrain_nb.tuning.place import study_places


def read_study(text: str) -> ImportedStudy:
    """Return the study in a text, and what of the text it has no place for.

    Raises OptionError naming what is wrong, or the forms that can be read.
    """
    check_length(text)
    if has_study(text):
        return study_from_python(text)
    value = _parsed(text.strip())
    if isinstance(value, dict):
        readers = (pair for place in study_places() for pair in place.readers.items())
        for key, reader in readers:
            if key in value:
                return reader(value)
        if "tune" in value:
            return ImportedStudy("study", options.from_mapping(value))
    raise OptionError(f"this is not a study in a known form; paste {_forms()}")


def read_study_file(name: str) -> ImportedStudy:
    """Return the study in a file. Raises OptionError naming the file, and as `read_study` does."""
    try:
        text = text_named(name)
    except OptionError as error:
        raise OptionError(f"can't read the study {error}") from None
    try:
        return read_study(text)
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None


def _parsed(text: str) -> object:
    if not text.startswith("{"):
        return yaml_texts(text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise OptionError(f"not JSON: {error}") from None
    except RecursionError:
        raise OptionError("not JSON of a study: it is nested too deeply") from None


def _forms() -> str:
    named = [name for place in study_places() for name in place.pasted]
    return f"{', '.join(named)}, or a study's own YAML"
