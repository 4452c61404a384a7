"""The page about layouts: its tables are those of the code, its examples print what they say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import layout_tables
import nbformat
import pytest

from distrain_nb.layout import Layout
from distrain_nb.layout.rules import check
from distrain_nb.layout.traffic import traffic
from tests.kernels import execute

if TYPE_CHECKING:
    from pathlib import Path

PAGE = layout_tables.PAGE.read_text(encoding="utf-8")


def test_the_tables_are_current() -> None:
    assert layout_tables.current_page() == PAGE, "run: python scripts/layout_tables.py"


def test_the_examples_print_what_they_say() -> None:
    code, shown = re.findall(r"```\w*\n(.*?)```", PAGE, re.DOTALL)[:2]
    printed: list[str] = []
    exec(code, {"print": lambda *parts: printed.append(" ".join(map(str, parts)))})
    assert "\n".join(printed) + "\n" == shown


def test_the_traffic_shown_is_the_traffic() -> None:
    job = Layout.of(
        "vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100", reducers="auto"
    )
    assert str(traffic(job, 1_340_000_000)) in PAGE


def test_the_yaml_shown_is_a_sound_layout() -> None:
    shown = re.findall(r"```yaml\n(on: .*?)```", PAGE, re.DOTALL)
    (layout,) = map(Layout.from_yaml, shown)
    assert check(layout) == ()
    assert [layout.to_yaml()] == shown


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    notebook = nbformat.read(layout_tables.PAGE.parents[1] / "notebooks" / "layouts.ipynb", 4)
    execute(notebook, tmp_path)
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    ]
    assert any("--reducers 16*n1-highcpu-16" in text for text in texts)
    assert any("gcloud ai custom-jobs create" in text for text in texts)
    assert any("runtimeVersion is not part of a layout" in text for text in texts)
