"""Vertex AI's `…StoppingSpec`s, which stop trials, and the `studyStoppingConfig` of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.mappings import MappingReader, present
from distrain_nb.tuning.formats.pieces import real_of
from distrain_nb.tuning.spec import (
    ConvexStopping,
    DecayCurveStopping,
    MedianStopping,
    Stopping,
    StudyEnd,
)

if TYPE_CHECKING:
    from distrain_nb.types import Json

_MEDIAN, _DECAY = "medianAutomatedStoppingSpec", "decayCurveStoppingSpec"
_CONVEX = "convexAutomatedStoppingSpec"
_ELAPSED = "useElapsedDuration"


def automated(stopping: Stopping | None) -> dict[str, Json]:
    """Return the field of a `StudySpec` that says how trials are stopped; none for what it can't
    say."""
    if isinstance(stopping, (MedianStopping, DecayCurveStopping)):
        key = _MEDIAN if isinstance(stopping, MedianStopping) else _DECAY
        return {key: {_ELAPSED: stopping.use_elapsed_duration}}
    if not isinstance(stopping, ConvexStopping):
        return {}
    fields = present(
        maxStepCount=stopping.max_steps,
        minStepCount=stopping.min_steps,
        minMeasurementCount=stopping.min_measurements,
        learningRateParameterName=stopping.learning_rate,
        updateAllStoppedTrials=stopping.update_all_stopped,
    )
    return {_CONVEX: {**fields, _ELAPSED: stopping.use_elapsed_duration}}


def read_automated(reader: MappingReader) -> tuple[Stopping | None, tuple[str, ...]]:
    """Return how trials are stopped, taken out of a `StudySpec`, and the paths that nobody took.

    Raises OptionError, naming the path, for what can't be read.
    """
    kinds = [key for key in (_MEDIAN, _DECAY, _CONVEX) if key in reader.values]
    if len(kinds) > 1:
        raise OptionError(f"{' and '.join(kinds)}: expected one of them")
    if not kinds:
        return None, ()
    part = reader.below(kinds[0])
    elapsed = part.flag(_ELAPSED)
    stopping: Stopping
    if kinds[0] == _CONVEX:
        stopping = ConvexStopping(
            part.number("maxStepCount"),
            part.number("minStepCount"),
            part.number("minMeasurementCount"),
            part.word("learningRateParameterName"),
            elapsed,
            _flag(part, "updateAllStoppedTrials"),
        )
    else:
        stopping = (MedianStopping if kinds[0] == _MEDIAN else DecayCurveStopping)(elapsed)
    return stopping, part.done()


def end_config(end: StudyEnd) -> dict[str, Json]:
    """Write when the study ends, as a `StudyStoppingConfig`; empty where nothing was set."""
    return present(
        shouldStopAsap=end.asap,
        minimumRuntimeConstraint=present(
            maxDuration=_duration(end.min_duration), endTime=end.min_time
        ),
        maximumRuntimeConstraint=present(
            maxDuration=_duration(end.max_duration), endTime=end.max_time
        ),
        minNumTrials=end.min_trials,
        maxNumTrials=end.max_trials,
        maxNumTrialsNoProgress=end.max_trials_no_progress,
        maxDurationNoProgress=_duration(end.max_duration_no_progress),
    )


def read_end(reader: MappingReader) -> tuple[StudyEnd, tuple[str, ...]]:
    """Read when the study ends, and the paths left out. Raises OptionError, naming a path."""
    least, most = reader.below("minimumRuntimeConstraint"), reader.below("maximumRuntimeConstraint")
    end = StudyEnd(
        _flag(reader, "shouldStopAsap"),
        _seconds(least, "maxDuration"),
        least.word("endTime"),
        _seconds(most, "maxDuration"),
        most.word("endTime"),
        reader.number("minNumTrials"),
        reader.number("maxNumTrials"),
        reader.number("maxNumTrialsNoProgress"),
        _seconds(reader, "maxDurationNoProgress"),
    )
    return end, reader.done(least, most)


def _flag(reader: MappingReader, key: str) -> bool | None:
    return reader.flag(key) if key in reader.values else None


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def _seconds(reader: MappingReader, key: str) -> float | None:
    text = reader.word(key)
    return None if text is None else real_of(text.removesuffix("s"), reader.at(key))
