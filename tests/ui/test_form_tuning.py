"""The form's rows for a study: what they say, what is wrong, and the line that they write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from distrain_nb.findings import Finding
from distrain_nb.tuning import options
from distrain_nb.tuning.spec import Goal, StudySpec
from distrain_nb.ui.form import Form
from distrain_nb.ui.form.tuning import INITIAL, SETTINGS, ParameterRow, Tuning
from tests.tuning.study_strategies import examples, studies
from tests.ui.test_form import said

SPEC = options.study(
    {
        "tune": [
            "lr=1e-5..1e-1:log,default=0.01",
            "width=16|32",
            "optimizer=sgd|adam",
            "momentum[optimizer=sgd]=0.5..0.99",
        ],
        "goal": ["min:val/loss", "max:speed"],
        "trials": "20",
        "parallel": "2",
        "search": "random,seed=7",
        "max_failed": "3",
        "initial": ["lr=0.01,width=16", "optimizer=sgd,momentum=0.9"],
        "measurement": "best",
    }
)


@pytest.fixture
def built(tmp_path: Path) -> Form:
    return Form(folder=tmp_path)


def typed(form: Form, **texts: str) -> None:
    """Fields by their paths, with `__` for the dots."""
    for path, text in texts.items():
        said(form, do="set", path=f"tuning.{path.replace('__', '.')[1:]}", text=text, group="")


def test_a_study_is_written_from_what_the_page_sends(built: Form) -> None:
    assert "--tune" not in built.line and built.widget.view["tuning"] == {
        "rows": [],
        "settings": [],
        "initial": [],
    }
    said(built, do="tune")
    typed(built, _0__name="lr", _0__values="1e-5..1e-1", _0__scale="log")
    typed(built, _goal="min:val/loss", _trials="20", _parallel="2", _stop="median")
    assert not built.findings
    lines = [line.strip(" \\") for line in built.line.splitlines()[1:]]
    assert lines == [
        "--tune lr=1e-05..0.1:log", "--goal min:val/loss", "--trials 20", "--parallel 2",
        "--stop median",
    ]  # fmt: skip
    assert (
        dict(each[::2][:2] for each in built.widget.view["exports"])["options"] == f"{built.line}\n"
    )
    said(built, do="untune", row=0)
    assert "--goal" not in built.line and not built.findings


def test_each_keystroke_is_checked_and_repairs_write_texts(built: Form) -> None:
    said(built, do="tune")
    assert [(each.where, each.code) for each in built.findings] == [
        ("tuning.0.name", "field-empty")
    ]
    typed(built, _0__name="lr", _0__values="0..1", _0__scale="log", _goal="min:loss")
    (finding, *_) = built.findings
    assert finding.where == "tuning.0.values" and finding.fixes
    shown = built.widget.view["findings"][0]
    assert shown["places"] == [["tuning.0.values", "Parameter 1, values"]]
    said(built, do="repair", code=finding.code, where=finding.where, label=finding.fixes[0].label)
    assert finding.code not in {each.code for each in built.findings}
    assert built.widget.view["repaired"]["beside"] == "tuning"
    said(built, do="undo")
    assert finding.code in {each.code for each in built.findings}


def test_what_can_not_be_read_stays_in_its_field_and_out_of_the_line(built: Form) -> None:
    said(built, do="tune")
    typed(built, _0__name="lr", _0__values="0.1..0.2", _goal="min:loss", _trials="many")
    (finding,) = built.findings
    assert (finding.where, finding.code) == ("tuning.trials", "field-unreadable")
    assert "--trials" not in built.line and "--goal min:loss" in built.line
    field = {each["name"]: each["text"] for each in built.widget.view["tuning"]["settings"]}
    assert field["tuned-trials"] == "many"


def about_tuning(form: Form) -> list[Finding]:
    return [each for each in form.findings if each.where.startswith("tuning.")]


def test_what_few_studies_need_is_written_and_checked_as_the_rest(built: Form) -> None:
    said(built, do="set", path="on", text="vertex", group="")
    said(built, do="tune")
    typed(built, _0__name="lr", _0__values="0.1..0.2", _goal="min:loss", _trials="9")
    typed(built, _max_failed="2", _measurement="best", _end="max-duration=2h")
    assert not about_tuning(built)
    for option in ("--max-failed 2", "--measurement best", "--end max-duration=2h"):
        assert option in built.line
    typed(built, _end="max-durations=2h", _measurement="worst", _max_failed="few", _noise="low")
    assert [(each.where, each.severity.value) for each in about_tuning(built)] == [
        ("tuning.max_failed", "error"), ("tuning.measurement", "error"), ("tuning.end", "error"),
    ]  # fmt: skip
    assert "expected asap, min-duration" in about_tuning(built)[2].message
    typed(built, _end="", _measurement="", _max_failed="")
    (finding,) = about_tuning(built)
    assert (finding.where, finding.code) == ("tuning.noise", "left-out")
    said(built, do="repair", code=finding.code, where=finding.where, label=finding.fixes[0].label)
    assert "--noise" not in built.line and not about_tuning(built)
    said(built, do="set", path="on", text="local", group="")
    typed(built, _end="max-trials=3")
    assert [(each.where, each.code) for each in about_tuning(built)] == [
        ("tuning.end", "end-place")
    ]


def test_trials_to_begin_with_have_a_row_each(built: Form) -> None:
    said(built, do="tune")
    typed(built, _0__name="lr", _0__values="0.1..0.2", _goal="min:loss", _trials="9")
    said(built, do="begin")
    assert [each.where for each in about_tuning(built)] == ["tuning.initial.0"]
    typed(built, _initial__0="lr = 0.15")
    said(built, do="begin")
    typed(built, _initial__1="lr=0.2, rate=1")
    (finding,) = about_tuning(built)
    assert (finding.where, finding.message) == ("tuning.initial.1", "rate isn't a parameter")
    shown = built.widget.view["findings"][0]["places"]
    assert shown == [["tuning.initial.1", "Initial trial 2"]]
    said(built, do="repair", code=finding.code, where=finding.where, label=finding.fixes[0].label)
    assert "--initial lr=0.15" in built.line and "--initial lr=0.2" in built.line
    fields = built.widget.view["tuning"]["initial"]
    assert [each["text"] for each in fields] == ["lr=0.15", "lr=0.2"]
    said(built, do="unbegin", row=0)
    assert "lr=0.15" not in built.line and "--initial lr=0.2" in built.line
    said(built, do="set", path="on", text="sagemaker", group="")
    assert "tuning.initial.0" in [each.where for each in about_tuning(built)]


def test_a_line_is_read_back_with_its_study(built: Form, tmp_path: Path) -> None:
    said(built, do="paste", text=" ".join(["%%distrain -n 2", *options.printed(SPEC)]))
    assert built.widget.view["tuning"]["rows"][3][0]["text"] == "momentum[optimizer=sgd]"
    again = Form(folder=tmp_path)
    said(again, do="paste", text=built.line)
    assert again.line == built.line and "--max-failed 3" in again.line
    assert again.layout == built.layout
    said(again, do="paste", text="%%distrain --tune lr=1..")
    assert again.line == built.line
    assert "--tune" in again.widget.files["note"] and again.widget.files["tone"] == "bad"


@pytest.mark.parametrize("metric", ["val loss", "a max:b", 'q"min:c', " x "])
def test_goals_whose_names_have_spaces_are_told_apart(metric: str) -> None:
    spec = options.study({"tune": "lr=0.1..0.2"}).edited(
        goals=(Goal(metric, "min"), Goal("acc", "max"))
    )
    assert Tuning.of(spec).words() == list(options.printed(spec))


PASTED = """
job = aiplatform.CustomJob("a", [{"machine_spec": {"machine_type": "n1-standard-4"}}])
hp_job = aiplatform.HyperparameterTuningJob(
    custom_job=job, metric_spec={"loss": "minimize"}, max_trial_count=4, parallel_trial_count=2,
    parameter_spec={"lr": hpt.DoubleParameterSpec(min=0.1, max=1, scale="log")},
)
"""


def test_a_tuning_job_in_python_becomes_layout_and_study(built: Form) -> None:
    said(built, do="paste", text=PASTED)
    assert "--primary n1-standard-4" in built.line and "--tune lr=0.1..1.0:log" in built.line
    layout = built.layout
    said(built, do="paste", text=PASTED[PASTED.index("hp_job") :].replace("0.1", "0.2"))
    assert built.layout == layout and "--tune lr=0.2..1.0:log" in built.line
    assert "custom_job" in built.widget.files["note"]


@examples
@given(studies())
def test_rows_and_options_say_the_same(spec: StudySpec) -> None:
    tuning = Tuning.of(spec)
    unreadable = [f for f in tuning.findings("local") if f.code == "field-unreadable"]
    assert not unreadable
    assert tuning.words() == list(options.printed(spec))


def test_the_study_stays_under_another_layout(built: Form) -> None:
    said(built, do="tune")
    typed(built, _0__name="lr", _0__values="0.1..0.2", _goal="min:loss")
    said(built, do="set", path="on", text="vertex", group="")
    said(built, do="paste", text="%%distrain -n 3")
    assert "--tune lr=0.1..0.2" in built.line


def test_a_spec_and_its_rows_say_the_same() -> None:
    tuning = Tuning.of(SPEC)
    assert tuning.rows[0] == ParameterRow("lr", "1e-05..0.1,default=0.01", "log")
    assert tuning.rows[3] == ParameterRow("momentum[optimizer=sgd]", "0.5..0.99", "")
    assert tuning.words() == list(options.printed(SPEC))
    assert list(tuning.findings("local")) == []


def test_every_option_of_a_study_has_a_field() -> None:
    """Its declaration makes it: a row of parameters stands for `--tune`."""
    assert {field.name for field in (*SETTINGS, INITIAL)} == options.PARTS.keys() - {"tune"}
    for field in SETTINGS:
        tuning = Tuning().typed(field.name, "7")
        assert tuning.text(field.name) == "7"
        assert tuning.typed(field.name, "") == Tuning()
