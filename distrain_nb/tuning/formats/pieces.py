"""The shared parts of the forms of studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.formats.mappings import MappingReader, whole_number
from distrain_nb.layout.formats.python_names import Call
from distrain_nb.layout.layout import Layout
from distrain_nb.tuning.spec import StudySpec


@dataclass(frozen=True)
class ImportedStudy:
    """A study read from another form, the layout of its trials where that is there too, the paths
    of what neither has a place for, and the trials' script as words behind `%distrain run`."""

    form: str
    spec: StudySpec
    layout: Layout | None = None
    left_out: tuple[str, ...] = ()
    script: tuple[str, ...] = ()


def real(reader: MappingReader, key: str, otherwise: float | None = None) -> float | None:
    """Return a number, or its text. Raises OptionError, naming its path, if it is none."""
    value = reader.values.pop(key, None)
    return otherwise if value is None else real_of(value, reader.at(key))


def real_of(value: object, path: str) -> float:
    """Return a number from a number or its text. Raises OptionError, naming the path."""
    try:
        return float(str(value))
    except ValueError:
        raise OptionError(f"invalid {path} {shown(value)}: expected a number") from None


def values(reader: MappingReader, key: str, read: Callable[[object, str], Any]) -> tuple[Any, ...]:
    """Return a list, each of it read. Raises OptionError, naming its path, if it is none."""
    listed = reader.values.pop(key, None) or []
    if not isinstance(listed, (list, tuple)):
        raise OptionError(f"invalid {reader.at(key)} {shown(listed)}: expected a list")
    return tuple(read(value, f"{reader.at(key)}[{n}]") for n, value in enumerate(listed))


def word_of(value: object, path: str) -> str:  # noqa: ARG001
    return str(value)


def mapping_of(value: object, path: str) -> MappingReader:
    return MappingReader.of(value, path)


def named(reader: MappingReader, key: str, names: Mapping[str, Any], otherwise: Any = None) -> Any:
    """Look up a word of the form. Raises OptionError that lists the allowed words."""
    word = reader.word(key)
    if word is None:
        return otherwise
    if word not in names:
        allowed = ", ".join(names)
        raise OptionError(f"invalid {reader.at(key)} {shown(word)}: expected {allowed}")
    return names[word]


def count(reader: MappingReader, key: str) -> int | None:
    """Return a whole number above 0; 0 is what the service chooses, as is none."""
    value = reader.values.pop(key, None)
    return None if value is None else whole_number(value, reader.at(key)) or None


def items(value: object) -> Iterator[tuple[object, object]]:
    """Yield the items of a mapping; nothing of any other value."""
    yield from value.items() if isinstance(value, dict) else ()


def name_parameter(path: str, dropped: list[str]) -> None:
    """Name a parameter, unless a part of it is."""
    if not any(name.startswith(path) for name in dropped):
        dropped.append(path)


def is_whole(spec: Call, bounds: Sequence[str]) -> bool:
    """Return whether the bounds or values of a parameter are known."""
    needed = ("values",) if "values" in spec.values else bounds
    return all(_is_said(spec.values.get(name)) for name in needed)


def _is_said(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, (list, tuple)) and bool(value))
