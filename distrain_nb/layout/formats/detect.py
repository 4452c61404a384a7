"""Reads a layout from whatever was pasted, recognizing the form."""

from __future__ import annotations

import ast
import json
import re

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.ai_platform import from_training_input
from distrain_nb.layout.formats.gcloud_reading import from_command
from distrain_nb.layout.formats.pieces import Imported
from distrain_nb.layout.formats.python import from_python
from distrain_nb.layout.formats.python_source import parsed
from distrain_nb.layout.formats.sagemaker import from_training_job
from distrain_nb.layout.formats.vertex import from_specs
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.yamls import check_length, yaml_texts

FORMS = (
    "workerPoolSpecs in JSON or YAML, `gcloud ai custom-jobs create`, AI Platform's config.yaml, "
    "`gcloud ai-platform jobs submit training`, a SageMaker estimator or a job of Vertex AI's SDK "
    "in Python, a CreateTrainingJob request in JSON, a layout's own YAML, or "
    "the options of %%distrain"
)

# None of them looks twice at what can't match: an open string ends with the text.
_STRINGS_AND_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*', re.DOTALL)
_PYTHON = re.compile(
    r"\bModelTrainer\(|\bEstimator\(|\b(train_)?instance_(type|count|groups)\s*=|\.set_hyperparameters\("
    r"|\bCustom\w*Job(\.from_local_script)?\(|\bHyperparameterTuningJob\(|ParameterSpec\("
    r"|\b(worker_pool_specs?|machine_type|machine_spec|job_spec|custom_job|replica_count)\s*="
)
_READ_COMMAND = re.compile(r"\bcustom-jobs\s+create\b|\bjobs\s+submit\s+training\b")
_COMMAND = re.compile(r"^[ \t]*(?:[!$][ \t]*)?gcloud\s", re.MULTILINE)
_OF_VERTEX = ("workerPoolSpecs", "jobSpec", "worker_pool_specs", "job_spec")
_OPTIONS = re.compile(r"%%distrain|--\w")


def read_any(text: str) -> Imported:
    """Return the layout in a pasted text, and what of the text it has no place for.

    Raises OptionError naming what is wrong, or the forms that can be read.
    """
    check_length(text)
    text = text.strip()
    is_python = bool(_PYTHON.search(text))
    if _COMMAND.search(text) and (_READ_COMMAND.search(text) or not is_python):
        return from_command(text)
    if text.startswith(("{", "[")):
        return _from_json(text)
    if _OPTIONS.match(text):
        return Imported("options", Layout.from_line(text.removeprefix("%%distrain")))
    if is_python:
        return from_python(text)
    try:
        value = yaml_texts(text)
    except OptionError:
        if not _is_code(text):
            raise
        return from_python(text)
    return _from_mapping(value, text)


def _is_code(text: str) -> bool:
    """Return whether a text is Python that does something, with IPython's commands passed over."""
    try:
        tree = parsed(text)
    except OptionError:
        return False
    return any(isinstance(node, (ast.Assign, ast.Call, ast.Import)) for node in ast.walk(tree))


def _from_json(text: str) -> Imported:
    try:
        value = json.loads(_tidied(text))
    except ValueError as error:
        if _is_literal(text):
            return from_python(text)
        raise OptionError(f"not JSON: {error}") from None
    except RecursionError:
        raise OptionError("not JSON of a layout: it is nested too deeply") from None
    return _from_mapping(value, text)


def _is_literal(text: str) -> bool:
    """Return whether a text begins with a mapping or list of Python's."""
    try:
        return bool(parsed(text).body)
    except OptionError:
        return False


def _tidied(text: str) -> str:
    """Strip JSON of what documents put into it: comments, `...`, and the commas these leave."""
    text = _STRINGS_AND_COMMENTS.sub(lambda match: "" if match[0][0] == "/" else match[0], text)
    text = re.sub(r"\.\.\.", "", text)
    return re.sub(r",(\s*[}\]])", r"\1", text)


def _from_mapping(value: object, text: str) -> Imported:
    if isinstance(value, list):
        return from_specs(value)
    if isinstance(value, dict):
        if not value.keys().isdisjoint(_OF_VERTEX):
            return from_specs(value)
        if "trainingInput" in value:
            return from_training_input(value)
        if not value.keys().isdisjoint(("ResourceConfig", "AlgorithmSpecification")):
            return from_training_job(value)
        if "on" in value:
            return Imported("layout", Layout.from_yaml(text))
    raise OptionError(f"this is not a layout in a known form; paste {FORMS}")
