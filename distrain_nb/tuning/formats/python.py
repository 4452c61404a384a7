"""The SDKs of the places in Python, read without running it: the first tuning job of a text, with
the machines of its trials where these are there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS, known_values
from distrain_nb.layout.formats.reading import from_python, reads_layout
from distrain_nb.layout.yamls import MOST_CHARACTERS
from distrain_nb.tuning.place import study_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distrain_nb.tuning.formats.pieces import ImportedStudy
    from distrain_nb.tuning.place import PythonStudies
    from distrain_nb.types import Unknown

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
