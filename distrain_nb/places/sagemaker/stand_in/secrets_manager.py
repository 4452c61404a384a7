"""Secrets that a job names, in moto's Secrets Manager: their values say that they are made up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from distrain_nb.places.sagemaker.stand_in.store import client
from distrain_nb.rehearsal.notes import secret_value
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE


def create_secrets(request: Mapping[str, Any], endpoint: str, region: str) -> None:
    """Create every secret that the job's variables name; `NAME#KEY` is a JSON object's."""
    named = json.loads(request.get("Environment", {}).get(SECRETS_VARIABLE, "{}"))
    values: dict[str, Any] = {}
    for address in named.values():
        name, _, key = address.partition("#")
        if key:
            values.setdefault(name, {})[key] = secret_value(address)
        else:
            values[name] = secret_value(name)
    store = client("secretsmanager", endpoint, region)
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            store.create_secret(Name=name.rpartition(":")[2], SecretString=text)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceExistsException":
                raise
