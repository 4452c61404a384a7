"""Placeholders in a form where something is to be filled in, as the clouds' documents write them,
and variables.

Exports write these words, and read back they say nothing. Any other word in capitals is a value.
"""

from __future__ import annotations

import re

# Vertex AI
LOCATION = "LOCATION"
PROJECT = "PROJECT_ID"
JOB_NAME = "JOB_NAME"
CONTAINER_IMAGE = "CUSTOM_CONTAINER_IMAGE_URI"

# AI Platform
ITS_NAME = "$JOB_NAME"
ITS_REGION = "$REGION"
JOB_DIR = "$JOB_DIR"
PACKAGE_PATH = "$APP_PACKAGE_PATH"
MODULE_NAME = "$MAIN_APP_MODULE"

# SageMaker
TRAINING_JOB_NAME = "TRAINING_JOB_NAME"
TRAINING_IMAGE = "TRAINING_IMAGE"
ROLE = "ROLE_ARN"
OUTPUT_PATH = "S3_OUTPUT_PATH"
INSTANCE_TYPE = "INSTANCE_TYPE"
ENTRY_POINT = "ENTRY_POINT"
PY_VERSION = "PY_VERSION"

WORDS = frozenset(
    {
        *(LOCATION, PROJECT, JOB_NAME, CONTAINER_IMAGE),
        *(ITS_NAME, ITS_REGION, JOB_DIR, PACKAGE_PATH, MODULE_NAME),
        *(TRAINING_JOB_NAME, TRAINING_IMAGE, ROLE, OUTPUT_PATH),
        *(INSTANCE_TYPE, ENTRY_POINT, PY_VERSION),
    }
)

# Of shells and Cloud Build, of IPython's commands, and of templates, as pipelines have them.
_VARIABLE = re.compile(
    r"\$\w+|\$\{[^{}$]*\}|\$\([^()$]*\)"
    r"|(?<!\{)\{[A-Za-z_][\w.\[\]'\"]*\}(?!\})|\{\{[^{}]*\}\}|\{%[^{}]*%\}"
)


def is_variable(value: object) -> bool:
    """Return whether only running the text would tell a value, as `$STAGE`, `{{ stage }}`, or what
    pipelines write in the place of a text, such as `{"Get": "Parameters.Stage"}`."""
    if isinstance(value, str):
        return value not in WORDS and bool(_VARIABLE.search(value))
    return value is not None and not isinstance(value, (int, float))


def unchosen(text: str) -> bool:
    """Return whether a text tells nothing: a placeholder, as LOCATION or $JOB_NAME, or a
    variable."""
    return text in WORDS or is_variable(text)
