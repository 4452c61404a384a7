"""What is tried next, asked of Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.tuning.engine import Outcome, SearchEngine, open_storage
from distrain_nb.tuning.options import study
from distrain_nb.tuning.spec import StudySpec

RUNNING = Outcome("running")


def spec(*tuned: str, **options: Any) -> StudySpec:
    return study({"tune": list(tuned), "goal": ["min:loss"], "trials": "20", **options})


def asked(engine: SearchEngine, count: int) -> list[dict[str, Any]]:
    found = [engine.ask() for _ in range(count)]
    assert None not in found
    return [each for each in found if each is not None]


def test_values_are_of_the_types_of_their_domains_and_within_them() -> None:
    engine = SearchEngine(
        spec("lr=1e-5..1e-1:log", "layers=1..4", "width=16|32", "size=1|2.5", "o=a|b")
    )
    for trial in asked(engine, 30):
        assert isinstance(trial["lr"], float) and 1e-5 <= trial["lr"] <= 1e-1
        assert isinstance(trial["layers"], int) and 1 <= trial["layers"] <= 4
        assert isinstance(trial["width"], int) and trial["width"] in (16, 32)
        assert isinstance(trial["size"], float) and trial["size"] in (1.0, 2.5)
        assert trial["o"] in ("a", "b")


def test_children_are_there_where_their_condition_holds_in_whatever_order() -> None:
    engine = SearchEngine(spec("m[o=sgd]=0.5..0.9", "n[m2=1]=1..2", "o=sgd|adam", "m2[o=adam]=1|2"))
    seen = set()
    for trial in asked(engine, 40):
        seen.add(frozenset(trial))
        assert ("m" in trial) == (trial["o"] == "sgd") != ("m2" in trial)
        assert ("n" in trial) == (trial.get("m2") == 1)
    assert len(seen) == 3


def test_reverse_log_tells_values_near_the_upper_end_apart() -> None:
    options = {"search": "random,seed=0"}
    engine = SearchEngine(spec("beta=0.001..1.0:reverse-log", **options))
    values = sorted(trial["beta"] for trial in asked(engine, 200))
    assert values[0] >= 0.001 and values[-1] <= 1.0
    assert values[50] > 0.7, "a quarter of the scale lies below 1.001 - 0.001 ** 0.25"
    assert values[150] > 0.99
    tried = engine.study.trials[0]
    assert list(tried.params) == ["1.001 - beta"] and "beta" in tried.user_attrs


def test_the_first_trials_are_those_that_were_given() -> None:
    first = ["lr=0.5,o=b", "o=a"]
    engine = SearchEngine(spec("lr=0.0..1.0", "o=a|b", initial=first))
    assert asked(engine, 1) == [{"lr": 0.5, "o": "b"}]
    assert asked(engine, 1)[0]["o"] == "a"
    assert asked(SearchEngine(spec("lr=0.0..1.0,default=0.25")), 1) == [{"lr": 0.25}]


GP = pytest.param("gp,seed=3", marks=pytest.mark.slow)


@pytest.mark.parametrize("search", ["tpe,seed=3", GP])
def test_what_was_told_leads_the_search(search: str) -> None:
    engine = SearchEngine(spec("x=-5.0..5.0", search=search))
    values = []
    for number in range(1, 26):
        (trial,) = asked(engine, 1)
        values.append((trial["x"] - 2) ** 2)
        engine.tell(number, Outcome("succeeded", (values[-1],), ((0, 9.0), (1, values[-1]))))
    assert min(values) < 0.1
    assert sorted(values[15:])[5] < sorted(values[:10])[5]


def test_a_grid_is_each_combination_once_and_then_none() -> None:
    engine = SearchEngine(spec("n=1..2", "o=a|b", "m[o=a]=5|6", search="grid"))
    tried = asked(engine, 6)
    assert engine.ask() is None
    assert {tuple(sorted(each.items())) for each in tried} == {
        *((("m", m), ("n", n), ("o", "a")) for m in (5, 6) for n in (1, 2)),
        *((("n", n), ("o", "b")) for n in (1, 2)),
    }
    known = [({"n": 1, "o": "a"}, RUNNING)] * 4
    again = SearchEngine(spec("n=1..2", "o=a|b", search="grid"), known)
    assert again.ask() is None, "it has had four, as the grid has"
    with pytest.raises(OptionError, match=r"list some, as in --tune x=0\|1"):
        SearchEngine(spec("x=0.0..1.0", search="grid"))


def test_an_engine_made_again_knows_what_the_first_one_knew(tmp_path: Path) -> None:
    asks = spec("x=0.1..1.0:log", "y=0.1..1.0:reverse-log", "o=a|b", parallel="2")
    engine = SearchEngine(asks, storage=tmp_path / "optuna.log", name="it")
    outcomes = [
        Outcome("succeeded", (0.5,), ((0, 1.0), (1, 0.5))),
        Outcome("stopped", (0.7,), ((0, 0.7),)),
        Outcome("failed"),
    ]
    tried = asked(engine, 4)
    for number, outcome in enumerate(outcomes, 1):
        engine.tell(number, outcome)
    before = told(engine)
    (tmp_path / "optuna.log.lock").symlink_to(tmp_path / "optuna.log")  # as a killed one leaves it
    known = list(zip(tried, [*outcomes, RUNNING], strict=True))
    again = SearchEngine(asks, known, tmp_path / "optuna.log", "it")
    assert told(again) == [(state, pytest.approx(params)) for state, params in before]
    assert again.study.trials[0].intermediate_values == {0: 1.0, 1: 0.5}
    again.tell(4, Outcome("succeeded", (0.1,), ()))
    import optuna

    seen = optuna.load_study(study_name="it", storage=open_storage(tmp_path / "optuna.log"))
    assert seen.best_trial.number == 3
    assert asked(again, 1)


def told(engine: SearchEngine) -> list[tuple[object, dict[str, Any]]]:
    return [(trial.state, trial.params) for trial in engine.study.trials]


def test_several_goals_have_a_direction_each() -> None:
    both = study({"tune": ["x=0.0..1.0"], "goal": ["min:loss", "max:speed"], "trials": "5"})
    engine = SearchEngine(both)
    asked(engine, 2)
    engine.tell(1, Outcome("succeeded", (0.1, 5.0), ((0, 0.1),)))
    engine.tell(2, Outcome("stopped", (0.2, 1.0), ((0, 0.2),)))
    assert [trial.number for trial in engine.study.best_trials] == [0]
