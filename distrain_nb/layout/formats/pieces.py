"""The shared parts of the forms: placeholders, durations, and reading that forgets nothing.

Placeholders in a form where something is to be filled in, as the clouds' documents write them.

Exports write these words, and read back they say nothing. Any other word in capitals is a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.layout import Layout

if TYPE_CHECKING:
    from distrain_nb.types import Json

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


@dataclass(frozen=True)
class Imported:
    """A layout read from another form, the paths of what a layout has no place for, and the script
    that runs on it with its arguments, as the words behind `%distrain run`. `values` has what is at
    those paths, as far as it can be read."""

    form: str
    layout: Layout
    left_out: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict, compare=False)


@dataclass
class MappingReader:
    """A mapping that is taken apart key by key, so that what nobody took can be listed."""

    values: dict[str, object]
    path: str = ""

    @classmethod
    def of(cls, value: object, path: str) -> MappingReader:
        """Raise OptionError, naming the path, if the value is no mapping."""
        if not isinstance(value, dict):
            raise OptionError(f"invalid {path or 'text'} {shown(value)}: expected a mapping")
        return cls(dict(value), path)

    def text(self, key: str) -> str | None:
        """Return a text, or None if it is not there or a placeholder.

        A variable gives None as well, and is left to be named.
        """
        if is_variable(self.values.get(key)):
            return None
        value = self.word(key)
        return None if value in WORDS else value

    def word(self, key: str) -> str | None:
        """Return a text that is no placeholder, whatever it is."""
        value = self.values.pop(key, None)
        return None if value in (None, "") else str(value)

    def number(self, key: str) -> int | None:
        """Return a whole number, None for a variable, which is left to be named. Raises
        OptionError, naming its path, if it is none."""
        if is_variable(self.values.get(key)):
            return None
        value = self.values.pop(key, None)
        return None if value is None else whole_number(value, self.at(key))

    def below(self, key: str) -> MappingReader:
        """Return the mapping at a key, empty if there is none."""
        return MappingReader.of(self.values.pop(key, None) or {}, self.at(key))

    def flag(self, key: str) -> bool:
        """Return a truth value, or its text. Raises OptionError, naming its path, if it is none."""
        value = self.values.pop(key, False)
        if str(value).lower() not in ("true", "false"):
            raise OptionError(f"invalid {self.at(key)} {shown(value)}: expected true or false")
        return str(value).lower() == "true"

    def rest(self, *parts: MappingReader) -> tuple[str, ...]:
        """Return the paths that `done` gives, without placeholders and empty values."""
        names = [key for key, value in self.values.items() if not _is_empty(value)]
        below = [path for part in parts for path in part.rest()]
        return (*map(self.at, names), *below)

    def done(self, *parts: MappingReader) -> tuple[str, ...]:
        """Return the paths that nobody took here and in the parts below."""
        below = [path for part in parts for path in part.done()]
        return (*(self.at(key) for key in self.values), *below)

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}" if self.path else key


def values_at(source: object, paths: Iterable[str]) -> dict[str, object]:
    """Return what a mapping has at these paths, `scheduling.disableRetries`; nothing for a path
    that isn't there."""
    values = {}
    for path in paths:
        value = source
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            values[path] = value
    return values


def as_arguments(values: Mapping[str, object]) -> Iterator[str]:
    """Yield hyperparameters as the clouds' toolkits give them to a script."""
    for name, value in values.items():
        yield f"--{name}"
        yield value if isinstance(value, str) else json.dumps(value)


def camel_keys(value: object) -> object:
    """Return a value with keys as JSON has them, where they are written as in Python."""
    if isinstance(value, dict):
        return {camel(str(key)): camel_keys(member) for key, member in value.items()}
    return [camel_keys(member) for member in value] if isinstance(value, (list, tuple)) else value


def camel(name: str) -> str:
    """Convert `machine_spec` to `machineSpec`."""
    return re.sub(r"_([a-z])", lambda part: part[1].upper(), name)


def snake(name: str) -> str:
    """Convert `machineSpec` to `machine_spec`."""
    return re.sub(r"[A-Z]", lambda part: f"_{part[0].lower()}", name)


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


def _is_empty(value: object) -> bool:
    return value in (None, "", {}, []) or (isinstance(value, str) and value in WORDS)


def whole_number(value: object, path: str) -> int:
    """Return a whole number from a number or its text. Raises OptionError, naming the path."""
    try:
        return int(str(value))
    except ValueError:
        raise OptionError(f"invalid {path} {shown(value)}: expected a whole number") from None


def seconds_of(value: str | None, path: str) -> int | None:
    """Parse a duration such as `3600s` into seconds. Raises OptionError, naming the path."""
    return None if value is None else whole_number(value.removesuffix("s"), path)


def present(**values: Json) -> dict[str, Json]:
    """Return the values that are there."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}
