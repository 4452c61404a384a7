"""Early stopping: what the rules say of curves, and what they save."""

from __future__ import annotations

import numpy as np
import pytest

from distrain_nb.errors import OptionError
from distrain_nb.tuning.spec import (
    ConvexStopping,
    DecayCurveStopping,
    HyperbandStopping,
    MedianStopping,
    Stopping,
)
from distrain_nb.tuning.stopping import check, reason_to_stop

STEPS = 50


def line(*values: float) -> np.ndarray:
    return np.column_stack([np.arange(1, len(values) + 1), values])


def loss_curve(random: np.random.Generator) -> np.ndarray:
    """As training goes: a power of the step, down to an end of its own, with some noise."""
    steps = np.arange(1, STEPS + 1)
    end, begin, speed = random.uniform(0.1, 1), random.uniform(1, 3), random.uniform(0.3, 1.5)
    noise = random.normal(0, 0.01, STEPS)
    return np.column_stack([steps, end + (begin - end) * steps**-speed + noise])


def played(rule: Stopping, curves: list[np.ndarray]) -> tuple[int, float]:
    """The steps that one trial after another takes, and the best last value."""
    ended: list[np.ndarray] = []
    finals = []
    for curve in curves:
        count = next(
            (n for n in range(1, STEPS) if reason_to_stop(rule, "min", curve[:n], ended)), STEPS
        )
        ended.append(curve[:count])
        if count == STEPS:
            finals.append(curve[-1, 1])
    return sum(map(len, ended)), min(finals)


@pytest.mark.parametrize(
    "rule",
    [
        MedianStopping(),
        # It fits a curve to each trial after each step.
        pytest.param(DecayCurveStopping(), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_third_of_the_steps_is_saved_and_the_best_trial_is_found(
    rule: Stopping, seed: int
) -> None:
    random = np.random.default_rng(seed)
    curves = [loss_curve(random) for _ in range(40)]
    steps, best = played(rule, curves)
    assert best == min(curve[-1, 1] for curve in curves)
    assert steps <= 0.7 * STEPS * len(curves)


def test_a_trial_is_stopped_below_the_median_of_the_averages_up_to_its_step() -> None:
    ended = [line(1, 3, 9), line(2, 4, 9), line(3, 5, 9)]  # averages up to step 2: 2, 3, 4
    rule = MedianStopping()
    assert reason_to_stop(rule, "max", line(2.9, 2), ended) == (
        "its best value so far, 2.9, is worse than the median of the others' averages, 3"
    )
    assert not reason_to_stop(rule, "max", line(3, 0), ended), "strictly below, by its best value"
    assert not reason_to_stop(rule, "max", line(2.9, 2), ended[:2]), "two are too few"
    assert reason_to_stop(rule, "min", line(5, 3.1), ended)
    assert not reason_to_stop(rule, "min", line(5, 2.9), ended)


def test_trials_that_had_not_come_so_far_and_values_that_are_none_count_for_nothing() -> None:
    ended = [line(1, 1), line(1, 1), line(1, 1), np.array([[9.0, 9.0]])]
    rule = MedianStopping()
    assert not reason_to_stop(rule, "max", line(1), ended)
    assert not reason_to_stop(rule, "max", line(float("nan")), ended)
    assert not reason_to_stop(rule, "max", np.empty((0, 2)), ended)
    assert reason_to_stop(rule, "max", line(0, float("nan")), ended)


def test_a_curve_is_continued_as_the_others_went_on() -> None:
    random = np.random.default_rng(5)
    ended = [loss_curve(random) for _ in range(8)]
    rule, good = DecayCurveStopping(), min(ended, key=lambda curve: curve[-1, 1])
    better = np.column_stack([good[:, 0], good[:, 1] - 0.05])
    assert not any(reason_to_stop(rule, "min", better[:n], ended) for n in range(1, STEPS))
    worse = np.column_stack([good[:, 0], good[:, 1] + 0.5])
    stopped = [n for n in range(1, STEPS) if reason_to_stop(rule, "min", worse[:n], ended)]
    assert stopped and stopped[0] < STEPS // 2
    up = [np.column_stack([c[:, 0], -c[:, 1]]) for c in (worse, *ended)]
    assert reason_to_stop(rule, "max", up[0][: stopped[0]], up[1:])
    assert "to beat the best value" in reason_to_stop(rule, "min", worse[:40], ended)


def test_what_only_a_service_knows_is_refused() -> None:
    with pytest.raises(OptionError, match="--stop hyperband is not known on this machine"):
        check(HyperbandStopping(), 1)
    with pytest.raises(OptionError, match="--stop convex is not known on this machine"):
        check(ConvexStopping(), 1)
    with pytest.raises(OptionError, match="--stop needs one goal"):
        check(MedianStopping(), 2)
    check(None, 2)
    check(DecayCurveStopping(), 1)
