"""The variables of `--env`: neither shown nor stored for longer than it takes to submit the job.

A request is shown and kept with `HIDDEN` in their place. The values themselves are in a file of
the run's folder that only its owner may read, until the service has the job.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.secrets import HIDDEN, STORED
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.folder import VARIABLES_FILE
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOTE = f"The values of --env are not shown ({HIDDEN})."


def variables_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the variables of `--env`, NAME=VALUE each. Raises OptionError."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not VARIABLE.fullmatch(name):
            raise OptionError(f"invalid --env {name!r}: expected NAME=VALUE")
        values[name] = value
    return values


def plain_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those that hold their values themselves."""
    return {name: value for name, value in variables.items() if not value.startswith(STORED)}


def secrets(variables: Mapping[str, str], resolve: Callable[[str, str], str]) -> dict[str, str]:
    """Return the variables that name a secret, as the worker reads them.

    `resolve` gives a secret's full name by the variable and what stands after `secret://`.
    """
    named = {
        name: resolve(name, value.removeprefix(STORED))
        for name, value in variables.items()
        if value.startswith(STORED)
    }
    return {SECRETS_VARIABLE: json.dumps(named)} if named else {}


def no_secret(name: str, text: str, form: str) -> OptionError:
    """Return the error for a secret's name that is not valid."""
    return OptionError(f"invalid --env '{name}={STORED}{text}': expected {STORED}{form}")


def restored_variables(hidden: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return variables with their values again. Raises DistrainError if one is not there any
    more."""
    lost = [name for name, value in hidden.items() if value == HIDDEN and name not in values]
    if lost:
        raise DistrainError(f"the values of --env are gone ({', '.join(lost)}): submit again")
    return {name: values[name] if value == HIDDEN else value for name, value in hidden.items()}


def store_variables(values: Mapping[str, str], folder: Path) -> None:
    """Write the values down for the process that submits the job."""
    if values:
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(folder / VARIABLES_FILE, mode, 0o600), "w") as file:
            json.dump(dict(values), file)


def stored_variables(folder: Path) -> dict[str, str]:
    """Return the kept values; none once they have been forgotten."""
    try:
        return fields.load_texts(folder / VARIABLES_FILE)
    except FileNotFoundError:
        return {}


def delete_variables(folder: Path) -> None:
    """Delete the kept values: the service has the job, or never will."""
    (folder / VARIABLES_FILE).unlink(missing_ok=True)
