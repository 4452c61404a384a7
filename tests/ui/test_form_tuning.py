"""The form's rows for a study: what they say, what is wrong, and the line that they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.tuning import options
from distrain_nb.ui.form import Form
from distrain_nb.ui.form.tuning import ParameterRow, Tuning
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
        ("tuning.0.name", "field-unreadable")
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
