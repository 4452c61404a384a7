"""The types of answers to a page, by the names of `page/src/protocol.d.ts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from distrain_nb.types import Json

# Any answer: JSON values by name.
Answer: TypeAlias = Mapping[str, object]

# Number, time, process, stream, whether the next of its writer takes its place, text.
LineRow: TypeAlias = tuple[int, float, int, str, bool, str]


class LogAnswer(TypedDict):
    """Rows `first` and following of the `rows` that pass, of `total` lines, and what still moves;
    `end`: no more will come."""

    total: int
    rows: int
    first: int
    end: bool
    lines: list[LineRow]
    bars: list[LineRow]


class CurveAnswer(TypedDict):
    """A line of a chart; what is not finite is a gap. `low` and `high` are the range of all points
    around each, None where no point is left out."""

    run: str
    tag: str
    step: list[int]
    wall_time: list[float | None]
    value: list[float | None]
    low: list[float | None] | None
    high: list[float | None] | None


class CurvesAnswer(TypedDict):
    """The lines of a chart, and what could not be read, a sentence for each file."""

    lines: list[CurveAnswer]
    notes: list[str]


class MediaRow(TypedDict):
    """A row that can be shown: how many there are to ask for, and the step of the last."""

    run: str
    tag: str
    kind: str
    count: int
    last: int


class MediaIndex(TypedDict):
    """An index of values that are no scalars: what can be shown, a sentence for each that can't,
    and the HParams plugin's values of each run, by name."""

    rows: list[MediaRow]
    notes: list[str]
    hparams: dict[str, dict[str, Json]]


class DisplayRow(TypedDict):
    """What a rank has shown: the `name` to ask for it by, and when, in seconds since 1970."""

    name: str
    rank: int
    time: float


class DrawnCharts(TypedDict):
    """The charts of one kind of metrics: what stands around the lines, the lines besides their
    points, and the points as bytes in base64."""

    sheet: str
    shape: dict[str, object]
    lines: list[dict[str, object]]


class ChartsAnswer(TypedDict):
    """All charts of a run, where they are not those that the page has `seen`; `end` says that no
    more will come."""

    seen: str
    end: bool
    metrics: DrawnCharts | None
    times: DrawnCharts | None
    resources: DrawnCharts | None
    media: MediaIndex | None
    displays: list[DisplayRow] | None


class Histograms(TypedDict):
    """Counts of values: `edges` are those of all bins, `counts` has a row for each step."""

    steps: list[int]
    edges: list[float]
    counts: list[list[float]]
    notes: list[str]
