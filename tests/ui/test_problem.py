"""What keeps a cell from running: place, reason, repairs, and what they make of the cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.api import Source, prepare
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.magics.command_line import cell_options
from distrain_nb.program import Cell, Notebook
from distrain_nb.ui.problem import Cells, Point, points_of, repaired
from distrain_nb.ui.problem_view import as_html, as_text

LABEL = "Cell In[3]"


def error_of(text: str, folder: Path, **names: object) -> DistrainError:
    """What a cell raises before anything is started."""
    head, _, _ = text.partition("\n")
    with pytest.raises(DistrainError) as raised:
        options = cell_options(head.split()[1:])
        assert options is not None
        source = Source(Cell(LABEL, text), Notebook(names, (), folder), first_line=2)
        prepare(source, **options).refuse()
    return raised.value


def points(text: str, folder: Path, **names: object) -> tuple[Point, ...]:
    return points_of(error_of(text, folder, **names).findings, Cells(text, LABEL))


def test_an_undefined_name_is_marked_and_its_import_offered(tmp_path: Path) -> None:
    text = "%%distrain -n 2\nimport torch\ndata = np.zeros(3)"
    found = points(text, tmp_path)
    assert as_text(found).splitlines() == [
        "`np` is not defined in the notebook: import it in the cell",
        "",
        "  Cell In[3], line 3  [capture.undefined-name]",
        "    2 │ import torch",
        "  ▶ 3 │ data = np.zeros(3)",
        "      │        ^^",
        "  → Add `import numpy as np`",
    ]
    (point,) = found
    after = "%%distrain -n 2\nimport numpy as np\nimport torch\ndata = np.zeros(3)"
    assert repaired(point, 0, text) == after
    assert repaired(point, 0, after) == after, "there is nothing left to repair"
    edited = "%%distrain -n 4 \\\n  --name a\n\ndata = np.ones(3)"
    repaired_since = "%%distrain -n 4 \\\n  --name a\nimport numpy as np\n\ndata = np.ones(3)"
    assert repaired(point, 0, edited) == repaired_since


def test_an_option_is_marked_as_it_was_written(tmp_path: Path) -> None:
    (point,) = points("%%distrain -n 0\n1", tmp_path)
    assert point.excerpt is not None
    (_, line), begin, end = point.excerpt.lines[0], point.excerpt.begin, point.excerpt.end
    assert line[begin:end] == "-n 0"


def test_a_name_that_is_nearly_there_is_offered(tmp_path: Path) -> None:
    text = "%%distrain\nmodel.trian = trian(1) + trian(2)"
    (point,) = points(text, tmp_path, train=print, model=3)
    assert [repair.label for repair in point.repairs] == ["Write `train`"]
    assert repaired(point, 0, text) == "%%distrain\nmodel.trian = train(1) + train(2)"


@pytest.mark.parametrize(
    ("text", "marked", "after"),
    [
        ("%%distrain --inclde a.csv\n1", "--inclde a.csv", "%%distrain --include a.csv\n1"),
        ("%%distrain --inclde=a.csv\n1", "--inclde=a.csv", "%%distrain --include=a.csv\n1"),
        (
            "%%distrain --result modle\nmodel=1",
            "--result modle",
            "%%distrain --result model\nmodel=1",
        ),
        (
            "%%distrain --include dta.csv\n1",
            "--include dta.csv",
            "%%distrain --include data.csv\n1",
        ),
        (
            "%%distrain --on vertex --primary n1-standard-8+3*V100 -- --epochs 3\n1",
            "--primary n1-standard-8+3*V100",
            "%%distrain --on vertex --primary n1-standard-8+4*V100 -- --epochs 3\n1",
        ),
    ],
)
def test_options_are_marked_and_repaired(
    tmp_path: Path, text: str, marked: str, after: str
) -> None:
    (tmp_path / "data.csv").touch()
    point = points(text, tmp_path)[0]
    assert point.excerpt is not None
    (row,) = point.excerpt.lines
    assert row[1][point.excerpt.begin : point.excerpt.end] == marked
    assert after in [repaired(point, number, text) for number in range(len(point.repairs))]
    assert point.repairs[0].line in as_text([point])


def test_several_are_counted_and_none_begins_with_a_code(tmp_path: Path) -> None:
    text = "%%distrain --result a\nprint(nowhere, neither)"
    found = points(text, tmp_path)
    said = as_text(found)
    assert said.startswith("3 problems\n")
    assert "Error" not in said
    assert all(f"\n{point.message}\n" in said for point in found)
    assert str(error_of(text, tmp_path)).startswith("--result: the cell does not set `a`")


def test_what_is_wrong_in_another_cell_is_shown_from_there() -> None:
    found = Finding("a.b", Severity.ERROR, "Cell In[1], line 2", "`missing` is not defined")
    cells = Cells("%%distrain\nf()", LABEL, {"Cell In[1]": "def f():\n    return missing"})
    (point,) = points_of([found], cells)
    assert point.where == "Cell In[1], line 2"
    assert point.excerpt is not None
    assert (2, "    return missing") in point.excerpt.lines


def test_a_panel_quotes_what_cells_say() -> None:
    error = OptionError("no option --<b>", where="--<b>")
    page = as_html(points_of(error.findings, Cells("%%distrain --<b> </script>\n1", LABEL)), "key")
    assert "<b>" not in page
    assert "&lt;/script&gt;" in page
    assert 'data-distrain-problem="key"' in page


WRITTEN = "%%distrain --env HF_TOKEN={token} --nmae a -- --key {key}\nprint(1)"
EXPANDED = "%%distrain --env HF_TOKEN=correct-horse --nmae a -- --api-key=battery-staple\nprint(1)"


def misspelt(cells: Cells) -> Point:
    with pytest.raises(OptionError) as raised:
        cell_options(["--nmae", "a"])
    (point,) = points_of(raised.value.findings, cells)
    return point


def test_a_repair_keeps_what_stands_for_a_value() -> None:
    point = misspelt(Cells(WRITTEN, LABEL, {}, ("{token}", "{key}"), ("correct-horse",)))
    after = WRITTEN.replace("nmae", "name")
    assert point.repairs[0].line == after.partition("\n")[0]
    assert repaired(point, 0, WRITTEN) == after
    assert point.excerpt is not None
    assert point.excerpt.lines == ((1, WRITTEN.partition("\n")[0]),)


def test_a_value_is_in_no_text_of_a_panel_but_a_repair_leaves_it() -> None:
    point = misspelt(Cells(EXPANDED, LABEL))
    for shown in (as_html([point], "key"), as_text([point])):
        assert "--env HF_TOKEN=*** --name a -- --api-key=***" in shown
        assert "correct-horse" not in shown and "battery-staple" not in shown
    assert repaired(point, 0, EXPANDED) == EXPANDED.replace("nmae", "name")


def test_a_message_has_no_value_of_the_options() -> None:
    found = Finding("a.b", Severity.ERROR, "env", "'correct-horse' is too long")
    (point,) = points_of([found], Cells(EXPANDED, LABEL))
    assert point.message == "'***' is too long"


def test_code_is_shown_without_what_looks_like_a_secret() -> None:
    token = "hf_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7"
    found = Finding("a.b", Severity.ERROR, f"{LABEL}, line 3", "`np` is not defined")
    (point,) = points_of([found], Cells(f"%%distrain\nmine = '{token}'\nnp", LABEL))
    assert point.excerpt is not None
    assert point.excerpt.lines == ((2, "mine = '***"), (3, "np"))
