"""docs/tuning.md: what it shows is read, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from distrain_nb.layout import PLACES
from distrain_nb.magics.verbs import STUDY_FORMS
from distrain_nb.tuning import text
from distrain_nb.tuning.formats import read_study
from distrain_nb.tuning.rules import check

PAGE = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")


def test_the_study_of_the_page_is_sound() -> None:
    (written,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    spec = read_study(written).spec
    assert [each.name for each in spec.parameters] == ["lr", "width", "optimizer", "momentum"]
    assert not check(spec, "local")


@pytest.mark.parametrize("written", re.findall(r"^\| `(\w[^`]*=[^`]+)` \|", PAGE, re.MULTILINE))
def test_each_parameter_of_the_table_is_read(written: str) -> None:
    for each in written.replace("\\|", "|").split("`; `"):
        assert text.parameter_text(text.parameter(each))


def test_each_form_is_named() -> None:
    table = PAGE[PAGE.index("written by `--as`") :]
    assert tuple(re.findall(r"\| `([a-z-]+)` \|$", table, re.MULTILINE)) == STUDY_FORMS


def test_what_the_page_says_of_places_is_what_the_rules_say() -> None:
    """Each place by what it refuses or leaves out of a study that has everything."""
    spec = read_study(
        "tune: [lr=1e-5..1e-1:log, width=16|32, o=sgd|adam, 'm[o=sgd]=0.5..0.99']\n"
        "goal: [min:loss, max:accuracy]\nsearch: random,seed=3\ninitial: lr=0.01\n"
    ).spec
    codes = {place: {each.code for each in check(spec, place)} for place in PLACES}
    assert codes["local"] == set()
    assert codes["vertex"] == {"left-out", "initial-place"}
    assert codes["sagemaker"] == {
        "initial-place", "goal-count", "tune-condition-place", "tune-words",
    }  # fmt: skip
    assert codes["ai-platform"] == {
        "initial-place", "goal-count", "tune-condition-place", "left-out",
    }  # fmt: skip
