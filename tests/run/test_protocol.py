"""What pages are answered has the same names in Python and in the page's own types."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from distrain_nb.run.pages import protocol
from distrain_nb.run.progress import RunProgress
from distrain_nb.run.summary import RunSummary

PAGE = Path(__file__).parents[2] / "page" / "src" / "protocol.d.ts"
INTERFACE = re.compile(r"export interface (\w+)[^{]*\{\n(.*?)\n\}", re.DOTALL)
INTERFACES = {
    name: {found[1] for found in re.finditer(r"^  (\w+)\??:", body, re.MULTILINE)}
    for name, body in INTERFACE.findall(PAGE.read_text(encoding="utf-8"))
}

NAMES = ["LogAnswer", "CurveAnswer", "MediaRow", "Histograms", "DrawnCharts", "ChartsAnswer"]


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_has_the_same_fields_on_both_sides(name: str) -> None:
    assert getattr(protocol, name).__annotations__.keys() == INTERFACES[name]


def test_a_summary_has_the_fields_that_the_page_reads() -> None:
    assert {field.name for field in fields(RunSummary)} | {"now"} == INTERFACES["RunSummary"]
    progress = {field.name for field in fields(RunProgress)} - {"source"}  # no page shows that
    assert progress == INTERFACES["Progress"]
