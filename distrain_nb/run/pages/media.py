"""Histograms, images, texts and hyperparameters of a run as JSON values, for a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from distrain_nb.errors import OptionError
from distrain_nb.run.metrics import summary_values
from distrain_nb.run.metrics.finite import or_none
from distrain_nb.run.metrics.non_scalars import Corrupt, Label
from distrain_nb.run.metrics.protobuf import Malformed
from distrain_nb.run.pages.query import number
from distrain_nb.run.summary import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from distrain_nb.run.metrics.events import EventFolder
    from distrain_nb.run.metrics.non_scalars import NonScalars, SummaryValue
    from distrain_nb.run.pages.protocol import Answer, Histograms, MediaIndex, MediaRow
    from distrain_nb.run.pages.query import Query
    from distrain_nb.run.streams import Scalars
    from distrain_nb.types import Json

T = TypeVar("T")

HPARAMS = "hparams"
LONGEST_TEXT = 20_000
STEPS, BINS = 50, 40


def index(non_scalars: NonScalars) -> MediaIndex:
    """List the values that are no scalars.

    `rows`: what can be shown, by run, tag and kind, with how many can be asked for and the step of
    the last; `notes`: a sentence for each that can't.
    """
    rows: list[MediaRow] = []
    notes: list[str] = []
    for label, pieces in non_scalars.rows.items():
        if label.kind in _ANSWERS:
            if pieces:
                rows.append(
                    {
                        "run": label.series,
                        "tag": label.tag,
                        "kind": label.kind,
                        "count": len(pieces),
                        "last": pieces[-1].step,
                    }
                )
        elif label.kind != HPARAMS:
            count = plural(non_scalars.written[label], "value")
            notes.append(f"not shown: {label.tag} ({label.kind}, {count})")
    if non_scalars.left_out:
        notes.append(f"not shown: {non_scalars.left_out:,} values of tags beyond the first 1,000")
    return {"rows": rows, "notes": notes, "hparams": hyperparameters(non_scalars)}


def hyperparameters(non_scalars: NonScalars) -> dict[str, dict[str, Json]]:
    """Return what each run of the HParams plugin was started with, by run and name."""
    by_run: dict[str, dict[str, Json]] = {}
    for label, pieces in non_scalars.rows.items():
        if label.kind == HPARAMS:
            for piece in pieces:
                values = _readable(piece, summary_values.hyperparameters)
                if values and not isinstance(values, str):
                    by_run.setdefault(label.series, {}).update(values)
    return by_run


def agreed_hyperparameters(non_scalars: NonScalars) -> dict[str, float | str]:
    """Return the run's hyperparameters, by name, without those on which its sessions disagree."""
    sessions = hyperparameters(non_scalars).values()
    newest = {name: value for values in sessions for name, value in values.items()}
    return {
        name: value
        for name, value in newest.items()
        if isinstance(value, int | float | str)
        and all(values.get(name, value) == value for values in sessions)
    }


def media(scalars: Scalars, query: Query) -> Answer:
    """Return the index, or with `kind`, `run` and `tag` what there is of one.

    Of an image or a text `at` is its number from 0; without it the last one is given.
    """
    with scalars.read() as events:
        if not query.get("kind"):
            return index(events.non_scalars)
        label, pieces = _row(events, query)
        return _ANSWERS[label.kind](pieces, query)


def _row(events: EventFolder, query: Query) -> tuple[Label, list[SummaryValue]]:
    label = Label(query.get("run", ""), query.get("tag", ""), query["kind"])
    if label.kind not in _ANSWERS:
        raise OptionError(f"invalid kind {label.kind!r}: expected one of {', '.join(_ANSWERS)}")
    pieces = events.non_scalars.rows.get(label)
    if not pieces:
        raise OptionError(f"there is no {label.kind} {label.tag!r} of {label.series or 'this run'}")
    return label, pieces


def _image(pieces: Sequence[SummaryValue], query: Query) -> Answer:
    return _piece(pieces, query, lambda value: asdict(summary_values.image(value)))


def _text(pieces: Sequence[SummaryValue], query: Query) -> Answer:
    return _piece(pieces, query, lambda value: {"text": summary_values.text(value)[:LONGEST_TEXT]})


def _piece(
    pieces: Sequence[SummaryValue], query: Query, decode: Callable[[bytes], Answer]
) -> Answer:
    at = number(query, "at", len(pieces) - 1, 0, len(pieces) - 1)
    piece = pieces[at]
    content = _readable(piece, decode)
    step_and_time = {"step": piece.step, "wall_time": or_none(piece.wall_time)}
    return {**step_and_time, **({"note": content} if isinstance(content, str) else content)}


def _histogram(pieces: Sequence[SummaryValue], query: Query) -> Histograms:  # noqa: ARG001
    """Return the histograms of all steps in the same bins: `counts` has a row for each step."""
    chosen = [pieces[at] for at in np.unique(np.linspace(0, len(pieces) - 1, STEPS).astype(int))]
    read = [(piece.step, _readable(piece, summary_values.histogram)) for piece in chosen]
    histograms = [(n, value) for n, value in read if isinstance(value, summary_values.Histogram)]
    notes = [value for _, value in read if isinstance(value, str)]
    notes += [
        f"step {step}: {plural(histogram.lost, 'bucket')} without finite numbers left out"
        for step, histogram in histograms
        if histogram.lost
    ]
    filled = [histogram for _, histogram in histograms if len(histogram.counts)]
    if not filled:
        return {"steps": [], "edges": [], "counts": [], "notes": notes}
    low = min(histogram.lower.min() for histogram in filled)
    high = max(histogram.upper.max() for histogram in filled)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    return {
        "steps": [step for step, _ in histograms],
        "edges": edges.tolist(),
        "counts": [_in_bins(histogram, edges).tolist() for _, histogram in histograms],
        "notes": notes,
    }


def _in_bins(bars: summary_values.Histogram, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts spread evenly over their buckets, put together again between these
    edges."""
    if not len(bars.counts):
        return np.zeros(len(edges) - 1)
    width = (edges[-1] - edges[0]) * 1e-9  # a bucket of no width is one value
    limits = np.stack([bars.lower, np.maximum(bars.upper, bars.lower + width)], axis=1)
    sums = np.zeros(len(edges))
    for (lower, right), count in zip(limits, bars.counts, strict=True):
        sums += count * np.clip((edges - lower) / (right - lower), 0, 1)
    below = float(bars.counts.sum()) - sums[-1]
    binned: NDArray[np.float64] = np.diff(sums)
    binned[-1] += below
    return binned


def _readable(piece: SummaryValue, decode: Callable[[bytes], T]) -> T | str:
    """Decode a value, or return a sentence that says why it can't be shown."""
    try:
        return decode(piece.read())
    except (Corrupt, Malformed) as error:
        return f"step {piece.step} can't be shown: {error}"
    except OSError as error:
        return f"step {piece.step} can't be read: {error.strerror}"


_ANSWERS: dict[str, Callable[[Sequence[SummaryValue], Query], Answer]] = {
    "histogram": _histogram,
    "image": _image,
    "text": _text,
}
