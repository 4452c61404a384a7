"""The shared parts of the forms of studies.

The SDKs of the places in Python, read without running it: the first tuning job of a text, with
the machines of its trials where these are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.files import MOST_CHARACTERS
from distrain_nb.layout.formats.pieces import MappingReader, whole_number
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS, known_values
from distrain_nb.layout.formats.reading import from_python, reads_layout
from distrain_nb.layout.layout import Layout
from distrain_nb.tuning.place import PythonStudies, study_places
from distrain_nb.tuning.spec import StudySpec

if TYPE_CHECKING:
    from distrain_nb.types import Unknown


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


_OF_TRIALS = ("custom_job", "estimator", "model_trainer", "trial_job_spec")


def has_study(text: str) -> bool:
    """Return whether a text is Python that says what a study tries."""
    return len(text) <= MOST_CHARACTERS and any(it.pattern.search(text) for it in _sdks())


def _sdks() -> list[PythonStudies]:
    return [place.python for place in study_places() if place.python]


def study_from_python(text: str) -> ImportedStudy:
    """Read the first study in a piece of Python. Raises OptionError if there is none."""
    sdks = {sdk.tuner: sdk for sdk in _sdks()}
    positions: dict[str, tuple[str, ...]] = {**PIPELINE_POSITIONS}
    for sdk in sdks.values():
        positions |= sdk.positions
    source = PythonSource(text, lambda call: call.name in sdks, positions)
    tuners = [call for call in source.calls if call.name in sdks]
    if tuners:
        first, *rest = tuners
        read = sdks[first.name].from_call(first)
        dropped = [*read.left_out, *first.late, *first.unnamed, *map(str, rest)]
    else:
        read = _from_names(source)
        dropped = list(read.left_out)
    if read.layout is None and reads_layout(text):
        machines = from_python(text)
        mine = {str(call) for call in tuners}
        dropped += [path for path in machines.left_out if path not in {*dropped, *mine}]
        read = replace(read, layout=machines.layout, script=machines.script)
        dropped = [path for path in dropped if path not in _OF_TRIALS]
    return replace(read, left_out=tuple(dict.fromkeys(dropped)))


def _from_names(source: PythonSource) -> ImportedStudy:
    """Read what a text assigns and gives to no job: a request, a `StudySpec`, or parameters."""
    for name, value in (*reversed(source.names.items()), *source.shown):
        for sdk in _sdks():
            read = sdk.from_value(name, value)
            if read is not None:
                return read
    tuners = ", ".join(f"{sdk.tuner}(…)" for sdk in _sdks())
    raise OptionError(
        "this Python has no study that can be read: paste the cell with "
        f"{tuners}, or the dictionary of their parameters"
    )


def arguments_of(tuner: Call) -> tuple[dict[str, Unknown], list[str]]:
    """Return the arguments that can be read, without the job of the trials, which is a layout's."""
    values = tuner.settled()
    jobs = [name for name in _OF_TRIALS if isinstance(values.get(name), (Call, Unread))]
    for name in jobs:
        del values[name]
    clean, dropped = known_values(values)
    return clean, [*jobs, *dropped]


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
