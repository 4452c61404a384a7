"""The head of a cell: options on several lines, and where the code begins below them."""

from __future__ import annotations

import pytest

from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports
from distrain_nb.repairs import head_lines, head_options
from tests.kernels import Kernel

LONG = Layout.of("vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100")


@pytest.mark.parametrize(
    ("cell", "lines", "says"),
    [
        ("%%distrain -n 2\nx = 1", 1, "-n 2"),
        ("%%distrain\nx = 1", 1, ""),
        ("%%distrain -n 2 \\\n    --name one\nx = 1", 2, "-n 2     --name one"),
        ("%%distrain \\ \n  -n 2 \\\n  --name \\\n one\n-x", 4, "-n 2   --name  one"),
        ("%%distrain\n--name one\n-n 2\n-- --epochs 3\nx", 4, "--name one -n 2 -- --epochs 3"),
        ("%%distrain -n 2\n\n--name", 1, "-n 2"),
        ("%%distrain -n 2\n-n\nx", 1, "-n 2"),
        ("%%distrain -n 2\n--1", 1, "-n 2"),
        ("%%distrain -n 2 \\", 1, "-n 2"),
        ("%%distrain -n 2 \\\n", 2, "-n 2"),
    ],
)
def test_the_code_begins_below_the_last_line_of_options(cell: str, lines: int, says: str) -> None:
    assert head_lines(cell) == lines
    assert head_options(cell).split() == says.split()


def test_a_long_layout_is_written_on_several_lines_and_read_back() -> None:
    text = exports(LONG)["options"]
    assert text.startswith("%%distrain --on vertex \\\n    --primary ")
    assert max(map(len, text.splitlines())) < 80
    assert head_lines(f"{text}import torch") == 3
    assert Layout.from_line(head_options(text)) == LONG
    assert Layout.from_line(text.removeprefix("%%distrain")) == LONG
    assert exports(Layout.of(workers=2))["options"] == "%%distrain --on local --workers 2\n"


@pytest.mark.slow
def test_lines_of_a_traceback_are_those_of_the_cell(nb: Kernel) -> None:
    cell = "%%distrain -n 1 \\\n    --name lines\n--experiment one\nimport os\n\nint(os.name)"
    outcome = nb.run(cell)
    assert "ValueError" in outcome.error and "line 6)" in outcome.error
