"""Reads a layout from whatever was pasted, recognizing the form."""

from __future__ import annotations

import json
import re

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.ai_platform import from_training_input
from distrain_nb.layout.formats.gcloud_reading import from_command
from distrain_nb.layout.formats.pieces import Imported
from distrain_nb.layout.formats.python import from_python
from distrain_nb.layout.formats.sagemaker import from_training_job
from distrain_nb.layout.formats.vertex import from_specs
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.yamls import check_length, yaml_texts

FORMS = (
    "workerPoolSpecs in JSON or YAML, `gcloud ai custom-jobs create`, AI Platform's config.yaml, "
    "`gcloud ai-platform jobs submit training`, a SageMaker estimator in Python, a "
    "CreateTrainingJob request in JSON, a layout's own YAML, or the options of %%distrain"
)

# None of them looks twice at what can't match: an open string ends with the text.
_STRINGS_AND_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*', re.DOTALL)
_ESTIMATOR = re.compile(r"\bModelTrainer\(|\b(train_)?instance_(type|count|groups)\s*=")
_COMMAND = re.compile(r"^[ \t]*(?:[!$][ \t]*)?gcloud\s", re.MULTILINE)
_OPTIONS = re.compile(r"%%distrain|--\w")


def read_any(text: str) -> Imported:
    """The layout in a pasted text, and what of the text it has no place for.

    Raises OptionError naming what is wrong, or the forms that can be read.
    """
    check_length(text)
    text = text.strip()
    if _COMMAND.search(text):
        return from_command(text)
    if text.startswith(("{", "[")):
        return _from_json(text)
    if _OPTIONS.match(text):
        return Imported("options", Layout.from_line(text.removeprefix("%%distrain")))
    if _ESTIMATOR.search(text):
        return from_python(text)
    return _from_mapping(yaml_texts(text), text)


def _from_json(text: str) -> Imported:
    try:
        value = json.loads(_tidied(text))
    except ValueError as wrong:
        raise OptionError(f"not JSON: {wrong}") from None
    except RecursionError:
        raise OptionError("not JSON of a layout: it is nested too deeply") from None
    return _from_mapping(value, text)


def _tidied(text: str) -> str:
    """JSON without what documents put into it: comments, `...`, and the commas these leave."""
    text = _STRINGS_AND_COMMENTS.sub(lambda found: "" if found[0][0] == "/" else found[0], text)
    text = re.sub(r"\.\.\.", "", text)
    return re.sub(r",(\s*[}\]])", r"\1", text)


def _from_mapping(value: object, text: str) -> Imported:
    if isinstance(value, list):
        return from_specs(value)
    if isinstance(value, dict):
        if "workerPoolSpecs" in value or "jobSpec" in value:
            return from_specs(value)
        if "trainingInput" in value:
            return from_training_input(value)
        if not value.keys().isdisjoint(("ResourceConfig", "AlgorithmSpecification")):
            return from_training_job(value)
        if "on" in value:
            return Imported("layout", Layout.from_yaml(text))
    raise OptionError(f"this is not a layout in a known form; paste {FORMS}")
