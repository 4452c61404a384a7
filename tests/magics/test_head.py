"""The head of a cell: options on several lines, and where the code begins below them."""

from __future__ import annotations

import pytest

from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports
from distrain_nb.magics import at_the_top
from distrain_nb.repairs import code_in_head, head_lines, head_options
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


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%%distrain -n 2 \\\nimport torch\nx = 1", "import torch"),
        ("%%distrain -n 2 \\\n    --rehearse \\ \n# what it does\nx = 1", "# what it does"),
        ("%%distrain -n 2 \\\nx = 1", "x = 1"),
        ("%%distrain -n 2 -- --epochs 3 \\\nfrom torch import nn", "from torch import nn"),
    ],
)
def test_code_below_a_backslash_is_told_from_options(cell: str, code: str) -> None:
    found = code_in_head(cell)
    assert found is not None and found[0] == code
    repaired = found[1].apply(cell)
    assert code_in_head(repaired) is None
    assert repaired.split("\n")[head_lines(repaired)] == code


@pytest.mark.parametrize(
    "cell",
    [
        "%%distrain -n 2 --result \\\nweights\nx = 1",
        "%%distrain -n 2 \\\n\nx = 1",
        "%%distrain -n 2 -- train \\\n  data.csv\nx = 1",
        "%%distrain -n 2 \\\n  --name one\nimport torch",
    ],
)
def test_a_head_may_go_on_below_a_backslash(cell: str) -> None:
    assert code_in_head(cell) is None


def test_a_long_layout_is_written_on_several_lines_and_read_back() -> None:
    text = exports(LONG)["options"]
    assert text.startswith("%%distrain --on vertex \\\n    --primary ")
    assert max(map(len, text.splitlines())) < 80
    assert head_lines(f"{text}import torch") == 3
    assert Layout.from_line(head_options(text)) == LONG
    assert Layout.from_line(text.removeprefix("%%distrain")) == LONG
    assert exports(Layout.of(workers=2))["options"] == "%%distrain --on local --workers 2\n"


@pytest.mark.slow
def test_code_below_a_backslash_is_refused(nb: Kernel) -> None:
    outcome = nb.run("%%distrain -n 1 \\\nimport os\nprint(1)")
    assert "'import os' isn't an option: the line above ends in a backslash" in outcome.error


@pytest.mark.slow
def test_lines_of_a_traceback_are_those_of_the_cell(nb: Kernel) -> None:
    cell = "%%distrain -n 1 \\\n    --name lines\n--experiment one\nimport os\n\nint(os.name)"
    outcome = nb.run(cell)
    assert "ValueError" in outcome.error and "line 6)" in outcome.error


@pytest.mark.parametrize(
    "above", ["# train\n", "\n# train\n\n", "# a\n# b\n", "import os\n", "# x\ny = 1\n"]
)
def test_what_is_above_the_line_is_named(above: str) -> None:
    what = "code" if "=" in above or "import" in above else "comment"
    words = rf"^%%distrain -n 2 has to be the first line of its cell: move the {what} "
    with pytest.raises(SyntaxError, match=words):
        at_the_top(f"{above}%%distrain -n 2\nprint(1)\n".splitlines(keepends=True))


@pytest.mark.parametrize(
    "cell",
    [
        *("%%distrain\n", "# only\n", "", "x = 1\n", "# a\n%%time\n", "%%time\n%%distrain\n"),
        "text = '''\n%%distrain\n'''\n",
    ],
)
def test_other_cells_are_left_as_they_are(cell: str) -> None:
    lines = cell.splitlines(keepends=True)
    assert at_the_top(lines) == lines
