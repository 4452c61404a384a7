"""A study's text: what people write is read, and what is written is read back as it was."""

from __future__ import annotations

import contextlib
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_strategies import examples, studies

from distrain_nb.errors import OptionError
from distrain_nb.tuning import options, text
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import (
    Categorical,
    Condition,
    ConvexStopping,
    Discrete,
    Double,
    Goal,
    Integer,
    Parameter,
    Search,
    StudyEnd,
    StudySpec,
)


@examples
@given(studies())
def test_a_study_is_read_back_from_its_yaml(spec: StudySpec) -> None:
    assert options.from_yaml(options.to_yaml(spec)) == spec


@examples
@given(studies())
def test_a_study_is_read_back_from_the_magics_line(spec: StudySpec) -> None:
    words = shlex.split(" ".join(options.printed(spec)))
    given: dict[str, object] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        found = given.setdefault(flag.removeprefix("--").replace("-", "_"), [])
        assert isinstance(found, list)
        found.append(value)
    assert options.study(given) == spec


@pytest.mark.parametrize(
    ("written", "parameter"),
    [
        ("lr=1e-5..1e-1:log", Parameter("lr", Double(1e-5, 0.1), "log")),
        ("layers=1..4", Parameter("layers", Integer(1, 4))),
        ("drop=0..0.5", Parameter("drop", Double(0.0, 0.5))),
        ("width=64|16|32", Parameter("width", Discrete((16.0, 32.0, 64.0)))),
        ("bias=True|False", Parameter("bias", Categorical(("True", "False")))),
        ("depth=auto|16", Parameter("depth", Categorical(("auto", "16")))),
        ('tag="16"|"32"', Parameter("tag", Categorical(("16", "32")))),
        ("seed = -3 .. 3 ", Parameter("seed", Integer(-3, 3))),
        (
            "momentum[optimizer=sgd|rmsprop]=0.5..0.99:reverse-log,default=0.9",
            Parameter(
                "momentum",
                Double(0.5, 0.99, 0.9),
                "reverse-log",
                Condition("optimizer", ("sgd", "rmsprop")),
            ),
        ),
    ],
)
def test_a_parameter_as_people_write_it(written: str, parameter: Parameter) -> None:
    assert text.parameter(written) == parameter
    assert text.parameter(text.parameter_text(parameter)) == parameter


def test_the_other_parts_as_people_write_them() -> None:
    assert text.goal("min:val/loss") == Goal("val/loss", "min")
    assert text.goal("maximize:accuracy") == Goal("accuracy", "max")
    assert text.goal("min:latency,threshold=5,fraction=0.9") == Goal("latency", "min", 5.0, 0.9)
    assert text.search("tpe") == Search("tpe")
    assert text.search("auto,seed=3") == Search(None, 3)
    assert text.stopping("convex,max-steps=100,learning-rate=lr") == ConvexStopping(
        100, learning_rate="lr"
    )
    assert text.end("max-duration=1h30m,asap") == StudyEnd(True, max_duration=5400.0)
    assert text.initial("lr=0.1,optimizer=sgd") == {"lr": 0.1, "optimizer": "sgd"}


def test_values_have_their_parameters_types() -> None:
    """The text of a word that looks like a number, and a number that is whole, are what the
    parameter says."""
    spec = options.study(
        {
            "tune": ['tag="16"|"32"', "width=16|32", "rate=0..1.5", "x[tag=16]=1..2"],
            "initial": "tag=16,width=16.0,rate=1",
        }
    )
    (trial,) = spec.initial
    assert [type(value) for value in trial.values()] == [str, int, float]
    assert spec.parameters[-1].condition == Condition("tag", ("16",))


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("tune", "lr", "expected NAME"),
        ("tune", "lr=1..b", "invalid number 'b'"),
        ("tune", "lr=1..2:logg", "invalid scale 'logg': expected linear, log, reverse-log; did"),
        ("tune", "lr=gs://a|b", "double quotes"),
        ("tune", "lr=1..2,begin=1", "expected NAME"),
        ("tune", "lr=a||b", "invalid word ''"),
        ("tune", "lr[=1..2", "[ isn't closed in '[=1..2': write words that have one in double qu"),
        ("tune", "lr=1..1e999", "invalid number '1e999'"),
        ("tune", f"lr=1|{'9' * 5_000}", "invalid number '999"),
        ("tune", "lr[a]=1..2", "invalid condition '[a]'"),
        ("goal", "loss", "expected min|max:METRIC"),
        ("goal", "lowest:loss", "expected min|max:METRIC"),
        ("search", "tpee", "did you mean tpe?"),
        ("search", "tpe,seed=0.5", "invalid seed 0.5: expected a whole number"),
        ("stop", "mean", "expected median|decay-curve|convex|hyperband"),
        ("stop", "median,elapsed=1", "unknown setting 'elapsed': expected use-elapsed-duration"),
        ("stop", "convex,max-steps=many", "invalid number 'many'"),
        ("trials", "many", "expected a whole number"),
        ("trials", ["1", "2"], "expected one value"),
        ("measurement", "first", "expected last|best"),
        ("initial", "lr", "expected NAME=VALUE"),
        ("end", "max-duration=soon", "expected a duration"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(option: str, value: object, says: str) -> None:
    with pytest.raises(OptionError) as raised:
        options.study({option: value})
    assert str(raised.value).startswith(f"invalid --{option} ")
    assert says in str(raised.value)


@examples
@given(st.text(max_size=30))
def test_any_text_raises_only_a_refusal(anything: str) -> None:
    for part in options.PARTS:
        with contextlib.suppress(OptionError):
            options.study({part: anything})


@examples
@given(studies(), st.sampled_from(["vertex", "sagemaker"]))
def test_a_repair_of_a_cells_text_leads_to_the_repaired_study(spec: StudySpec, place: str) -> None:
    cell = "\n".join([f"%%distrain -n 2 {' '.join(options.printed(spec))}", "train(lr)", ""])
    for finding in check(spec, place):
        told = options.in_cell(finding, spec)
        for fix, of_text in zip(finding.fixes, told.fixes, strict=True):
            repaired = of_text.apply(cell)
            assert repaired.endswith("\ntrain(lr)\n")
            assert options.texts(_of_cell(repaired)) == options.texts(fix.apply(spec))


def _of_cell(cell: str) -> StudySpec:
    words = shlex.split(cell.split("\n")[0])[3:]
    given: dict[str, Any] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(flag.removeprefix("--").replace("-", "_"), []).append(value)
    return options.study(given)


def test_a_repair_leaves_what_it_is_not_about_as_it_was_written() -> None:
    written = "--tune lr=1e-5..1e-1:log --tune='width=32|16|32' --tune layers=1..4 --goal min:loss"
    cell = f"%%distrain {written}\ntrain()"
    spec = options.study(
        {"tune": ["lr=1e-5..1e-1:log", "width=32|16|32", "layers=1..4"], "goal": "min:loss"}
    )
    (finding,) = check(spec, "local")
    (fix,) = options.in_cell(finding, spec).fixes
    assert fix.apply(cell) == cell.replace("--tune='width=32|16|32'", "--tune 'width=16|32'")
