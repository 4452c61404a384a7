"""Studies that were written to do harm: each is refused with a short sentence, and soon."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from distrain_nb.tuning.formats import read_study
from distrain_nb.ui.form import Form
from tests.hostile import SOON_S, refused
from tests.ui.test_form import said

LONG = 90_000


def study(**options: object) -> str:
    return json.dumps({"tune": ["x=1..2"], "goal": "min:loss", **options})


CRUEL = {
    "open brackets": study(tune="[" * LONG),
    "open brackets in YAML": f"tune: '{'[' * LONG}'",
    "open brackets in a goal": study(goal="min:" + "[," * (LONG // 2)),
    "open quotes": study(tune='"' + '\\"' * (LONG // 4)),
    "open quotes behind values": study(initial='x=1,"' + '\\"' * (LONG // 4)),
    "digits that are no number": study(tune="x=1.." + "9" * LONG + "x"),
    "a word of digits": study(tune="x=" + "9" * LONG + "[a]"),
    "a long number": study(tune="x=1.." + "9" * LONG),
    "many settings": study(stop="median" + ",z" * (LONG // 2)),
    "a condition of nothing": study(tune="x[" + "a" * LONG + "]=1..2"),
    "an unknown part": study(**{"t" * LONG: "1"}),
    "deep JSON": '{"tune":' + "[" * LONG,
    "deep YAML": "tune: " + "[" * LONG,
    "too long": "tune: x=1..2\n" + "#" * 5_000_000,
}


@pytest.mark.parametrize("text", CRUEL.values(), ids=CRUEL)
@pytest.mark.timeout(60)
def test_cruel_studies_are_refused_with_a_sentence(text: str) -> None:
    refused(read_study, text)


@pytest.mark.parametrize("name", ["[" * 20_000, '"' + '\\"' * 10_000, "x=" + "9" * 20_000 + "x"])
@pytest.mark.timeout(60)
def test_a_field_of_the_form_answers_as_soon(tmp_path: Path, name: str) -> None:
    form = Form(folder=tmp_path)
    form.tune()
    begin = time.thread_time()
    said(form, do="set", path="tuning.0.name", text=name, group="")
    assert time.thread_time() - begin < SOON_S
    assert form.findings
