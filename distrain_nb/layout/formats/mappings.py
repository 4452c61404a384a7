"""Mappings of the forms: read key by key, so that nothing is forgotten, and written without what is
empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.formats.placeholders import WORDS, is_variable

if TYPE_CHECKING:
    from distrain_nb.types import Json


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
