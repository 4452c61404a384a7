"""Studies in Python for the SDKs of the places, read without running it.

The first tuning job of a text counts, with the machines of its trials where the text has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS, known_values
from distrain_nb.layout.formats.reading import from_python, reads_layout
from distrain_nb.layout.yaml_reading import MOST_CHARACTERS
from distrain_nb.tuning.formats.pieces import ImportedStudy
from distrain_nb.tuning.place import PythonStudies, study_places

if TYPE_CHECKING:
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
