"""Moving averages over all points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from distrain_nb.errors import OptionError
from distrain_nb.run.metrics.downsample import thin
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.metrics.records import POINT
from distrain_nb.run.metrics.smooth import smooth
from distrain_nb.run.pages.curves import curves
from distrain_nb.run.streams import Scalars
from distrain_nb.worker.metrics import event_format
from tests.fuzzing import several

VALUES = arrays(
    np.float64,
    st.integers(0, 700),
    elements=st.floats(-1e6, 1e6) | st.just(np.nan),
    fill=st.just(1),
)


def one_by_one(values: np.ndarray, weight: float) -> list[float]:
    found, average, left = [], 0.0, 1.0
    for value in values.tolist():
        if np.isfinite(value):
            average, left = weight * average + (1 - weight) * value, left * weight
            found.append(average / (1 - left))
        else:
            found.append(value)
    return found


@given(VALUES, st.floats(0.001, 0.999))
@settings(max_examples=several(100), deadline=None)
def test_blocks_give_what_one_by_one_gives(values: np.ndarray, weight: float) -> None:
    points = np.zeros(len(values), POINT)
    points["value"] = values
    expected = one_by_one(values, weight)
    found = smooth(points, weight)["value"].tolist()
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-3, nan_ok=True)


def test_a_page_gets_averages_of_what_it_can_t_see(tmp_path: Path) -> None:
    noisy = [float(n % 2) for n in range(20_000)]
    data = b"".join(
        event_format.record(event_format.event(0.0, n, {"a": v})) for n, v in enumerate(noisy)
    )
    (tmp_path / "events.out.tfevents.1").write_bytes(data)
    query = {"smoothing": "0.9", "points": "50", "from": "10000", "to": "10100"}
    (line,) = curves(Scalars(EventFolder(tmp_path)), query)["lines"]
    assert 10_000 <= line["step"][0] < line["step"][-1] <= 10_100
    expected = one_by_one(np.array(noisy), 0.9)
    assert line["value"] == pytest.approx([expected[step] for step in line["step"]])


@pytest.mark.parametrize("wrong", ["1", "-0.1", "nan", "much"])
def test_a_weight_is_less_than_one(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"invalid smoothing '?{wrong}'?: expected a number"):
        curves(Scalars(EventFolder(tmp_path)), {"smoothing": wrong})


@given(VALUES, st.integers(3, 200))
@settings(max_examples=several(100), deadline=None)
def test_a_band_has_all_points_that_a_thinned_line_leaves_out(
    values: np.ndarray, count: int
) -> None:
    points = np.zeros(len(values), POINT)
    points["step"], points["value"] = np.arange(len(values)), values
    thinned, low, high = thin(points, count)
    assert len(thinned) == min(len(values), count)
    finite = np.isfinite(values)
    for edge, is_beyond in ((low, np.less), (high, np.greater)):
        there = np.isfinite(edge)
        drawn = np.interp(points["step"], thinned["step"][there], edge[there]) if there.any() else 0
        assert not is_beyond(values[finite], np.broadcast_to(drawn, len(values))[finite]).any()


def test_a_gap_stays_in_a_thinned_line() -> None:
    points = np.zeros(100_000, POINT)
    points["step"], points["value"] = np.arange(len(points)), np.linspace(3.0, 1.0, len(points))
    points["value"][70_001] = np.nan
    points["value"][80_000:80_003] = np.inf
    thinned = thin(points, 300).points
    assert {70_001, 80_000} <= {*thinned["step"][~np.isfinite(thinned["value"])].tolist()}
    points["value"][::2] = np.nan
    thinned = thin(points, 300).points
    assert len(thinned) == 300
    assert np.isfinite(thinned["value"]).any()


def test_a_page_gets_the_range_of_what_it_doesn_t_get(tmp_path: Path) -> None:
    values = [9.0 if n == 777 else -9.0 if n == 778 else n % 3 / 2 for n in range(5_000)]
    data = b"".join(
        event_format.record(event_format.event(0.0, n, {"a": v})) for n, v in enumerate(values)
    )
    (tmp_path / "events.out.tfevents.1").write_bytes(data)
    scalars = Scalars(EventFolder(tmp_path))
    (line,) = curves(scalars, {"points": "50"})["lines"]
    assert len(line["low"] or []) == len(line["high"] or []) == 50
    assert (min(line["low"] or []), max(line["high"] or [])) == (-9.0, 9.0)
    (line,) = curves(scalars, {"points": "50", "from": "770", "to": "790"})["lines"]
    assert line["low"] is line["high"] is None
