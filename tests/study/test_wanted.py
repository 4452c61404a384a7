"""The spec that options ask for: read from a file, changed by options, checked, and copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distrain_nb.errors import CheckFailed, OptionError
from distrain_nb.findings import Severity
from distrain_nb.magics.studies import tune_verb
from distrain_nb.magics.verbs import STUDY_FORMS, line_parser
from distrain_nb.study import Study
from distrain_nb.study.starting import prepare
from distrain_nb.tuning.formats import all_forms, read_study
from distrain_nb.tuning.spec import Discrete, Goal

CELL = "from distrain_nb import log_metrics\nlog_metrics({'loss': lr * width}, step=1)\n"
CONFIG = """
studySpec:
  metrics:
  - {metricId: loss, goal: MINIMIZE}
  parameters:
  - parameterId: lr
    doubleValueSpec: {minValue: 0.001, maxValue: 1}
    scaleType: UNIT_LOG_SCALE
  - parameterId: width
    discreteValueSpec: {values: [16, 32]}
maxTrialCount: 12
trialJobSpec:
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-8}
    containerSpec: {imageUri: gcr.io/p/i:1, args: [--epochs, "3"]}
"""


def test_a_tuning_jobs_config_is_a_study_here_and_options_change_it(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    prepared = prepare(CELL, study=str(file), trials="3", search="random")
    lr, width = prepared.spec.parameters
    assert (lr.name, lr.scale, width.domain) == ("lr", "log", Discrete((16.0, 32.0)))
    assert prepared.spec.goals == (Goal("loss", "min"),)
    assert (prepared.spec.trials, prepared.spec.search.algorithm) == (3, "random")
    (left,) = prepared.findings
    assert left.severity is Severity.WARNING
    assert "trialJobSpec.workerPoolSpecs[0].containerSpec.args" in left.message
    assert "the machines of its trials" in left.message


def test_a_grid_has_all_its_trials_unless_fewer_are_asked_for(home: Path) -> None:
    tuned = {"tune": ["lr=0.1|0.2", "width=1..3"], "goal": "min:loss"}
    assert prepare(CELL, **tuned, search="grid").spec.trials == 6
    assert prepare(CELL, **tuned, search="grid", trials="2").spec.trials == 2
    assert prepare(CELL, **tuned).spec.trials == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "can't read the study {file}: No such file or directory"),
        ("on: vertex", "{file}: this is not a study in a known form"),
        ("studySpec: {parameters: 3}", "{file}: invalid studySpec.parameters"),
    ],
)
def test_a_file_that_is_no_study_is_named(
    home: Path, tmp_path: Path, text: str | None, says: str
) -> None:
    file = tmp_path / "study.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OptionError) as refused:
        prepare(CELL, study=str(file))
    assert str(refused.value).startswith(says.format(file=file))


def test_what_is_wrong_with_a_study_is_repaired_in_the_cell(home: Path) -> None:
    line = "%%distrain --tune lr=1..0.001 --tune width=16|32 --goal min:loss"
    with pytest.raises(CheckFailed) as refused:
        prepare(CELL, tune=["lr=1..0.001", "width=16|32"], goal="min:loss")
    (finding,) = refused.value.findings
    (fix,) = finding.fixes
    repaired = fix.apply(f"{line}\n{CELL}")
    assert repaired == f"{line.replace('lr=1..0.001', 'lr=0.001..1.0')}\n{CELL}"


def test_what_is_wrong_with_a_file_is_not_repaired_in_the_cell(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("tune: [width=32..16]\ngoal: min:loss\n")
    with pytest.raises(CheckFailed, match="the range of width ends at 16") as refused:
        prepare(CELL, study=str(file))
    assert refused.value.findings[0].fixes == ()


@pytest.mark.parametrize("name", STUDY_FORMS)
def test_a_study_is_printed_in_each_form(
    bowl_home: Study, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    tune_verb(line_parser().read(["tune", "bowl", "--as", name]))
    said = capsys.readouterr()
    if name.startswith("sagemaker"):
        json.loads(said.out)
    found = read_study(said.out).spec
    assert {each.name for each in found.parameters} == {"x", "width", "optimizer", "momentum"}
    assert found.trials == bowl_home.spec.trials
    assert ("initial" in said.err) == (name != "yaml")


def test_every_form_has_its_name_on_the_line() -> None:
    assert tuple(form.name for form in all_forms()) == STUDY_FORMS


def test_options_that_contradict_each_other(bowl_home: Study) -> None:
    with pytest.raises(OptionError, match="contradict"):
        tune_verb(line_parser().read(["tune", "bowl", "--as", "yaml", "--stop", "1"]))
