"""Placeholders in a form where something is to be filled in, as the clouds' documents write them.

Exports write these words, and read back they say nothing. Any other word in capitals is a value.
"""

from __future__ import annotations

# Vertex AI
LOCATION = "LOCATION"
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
        *(LOCATION, JOB_NAME, CONTAINER_IMAGE),
        *(ITS_NAME, ITS_REGION, JOB_DIR, PACKAGE_PATH, MODULE_NAME),
        *(TRAINING_JOB_NAME, TRAINING_IMAGE, ROLE, OUTPUT_PATH),
        *(INSTANCE_TYPE, ENTRY_POINT, PY_VERSION),
    }
)
