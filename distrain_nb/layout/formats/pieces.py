"""What the forms have in common: placeholders, durations, and reading that forgets nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.layout.layout import Layout
    from distrain_nb.types import Json

_PLACEHOLDER = re.compile(r"\$\{?\w+\}?|[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class Imported:
    """A layout read from another form, the paths of what a layout has no place for, and the script
    that runs on it with its arguments, as the words behind `%distrain run`."""

    form: str
    layout: Layout
    left_out: tuple[str, ...] = ()
    script: tuple[str, ...] = ()


@dataclass
class Given:
    """A mapping that is taken apart key by key, so that what nobody took can be listed."""

    values: dict[str, object]
    path: str = ""

    @classmethod
    def of(cls, value: object, path: str) -> Given:
        """Raises OptionError, naming the path, if the value is no mapping."""
        if not isinstance(value, dict):
            raise OptionError(f"invalid {path or 'text'} {shown(value)}: expected a mapping")
        return cls(dict(value), path)

    def text(self, key: str) -> str | None:
        """A text, or None if it is not there or only a placeholder."""
        value = self.values.pop(key, None)
        return None if value in (None, "") else chosen(str(value))

    def word(self, key: str) -> str | None:
        """A text that is written like a placeholder without being one, such as SPOT."""
        value = self.values.pop(key, None)
        return None if value in (None, "") else str(value)

    def number(self, key: str) -> int | None:
        """A whole number. Raises OptionError, naming its path, if it is none."""
        value = self.values.pop(key, None)
        return None if value is None else whole(value, self.at(key))

    def below(self, key: str) -> Given:
        """The mapping at a key, empty if there is none."""
        return Given.of(self.values.pop(key, None) or {}, self.at(key))

    def flag(self, key: str) -> bool:
        """A truth value, or its text. Raises OptionError, naming its path, if it is none."""
        value = self.values.pop(key, False)
        if str(value).lower() not in ("true", "false"):
            raise OptionError(f"invalid {self.at(key)} {shown(value)}: expected true or false")
        return str(value).lower() == "true"

    def rest(self, *parts: Given) -> tuple[str, ...]:
        """The same as `done` without what says nothing: placeholders and empty values."""
        said = {key: value for key, value in self.values.items() if not _is_empty(value)}
        below = [path for part in parts for path in part.rest()]
        return (*(self.at(key) for key in said), *below)

    def done(self, *parts: Given) -> tuple[str, ...]:
        """The paths that nobody took here and in the parts below."""
        below = [path for part in parts for path in part.done()]
        return (*(self.at(key) for key in self.values), *below)

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key


def as_arguments(values: Mapping[str, object]) -> Iterator[str]:
    """Hyperparameters as the clouds' toolkits give them to a script."""
    for name, value in values.items():
        yield f"--{name}"
        yield value if isinstance(value, str) else json.dumps(value)


def unchosen(text: str) -> bool:
    """Whether a text stands for something to be filled in, as LOCATION or $JOB_NAME."""
    return _PLACEHOLDER.fullmatch(text) is not None


def _is_empty(value: object) -> bool:
    return value in (None, "", {}, []) or (isinstance(value, str) and unchosen(value))


def chosen(text: str) -> str | None:
    """The text, or None if it stands for something to be filled in, as LOCATION or $JOB_NAME."""
    return None if unchosen(text) else text


def whole(value: object, path: str) -> int:
    """A whole number from a number or its text. Raises OptionError, naming the path."""
    try:
        return int(str(value))
    except ValueError:
        raise OptionError(f"invalid {path} {shown(value)}: expected a whole number") from None


def seconds_of(value: str | None, path: str) -> int | None:
    """3600 of `3600s`. Raises OptionError, naming the path."""
    return None if value is None else whole(value.removesuffix("s"), path)


def present(**values: Json) -> dict[str, Json]:
    """The values that are there."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}
