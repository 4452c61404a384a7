"""What a cell shows in a notebook it says in a run too, and what asks the user is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import RunFailed
from distrain_nb.run import final_lines

SHOWS = """
import pandas as pd
from IPython.display import HTML, display as shown
class Page:
    def _repr_html_(self):
        return "<style>p {}</style><p>one <b>bold</b><br>two</p>"
display({"a": 1}, pd.DataFrame({"b": [2]}))
shown(Page(), HTML("<i>three</i>"))
handle = shown("four", display_id=True)
handle.update(5)
shown({"text/plain": "six", "text/html": "<b>6</b>"}, raw=True)
Page()
"""
SHOWN = ["{'a': 1}", "   b", "0  2", "one bold", "two", "three", "'four'", "5", "six"]
PLOTS = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 2])
plt.show()
plt.plot([3])
kept, _ = plt.subplots(num="kept")
display(kept)
"""
BARS = """
from tqdm.notebook import tqdm, trange
from tqdm.auto import tqdm as chosen
for _ in tqdm(range(3), desc="loss", display=True): pass
for _ in trange(4): pass
for _ in chosen(range(5)): pass
"""
SPAWNS = """
import multiprocessing
def child():
    import pdb
    display("in a child")
    try:
        pdb.set_trace()
    except RuntimeError as refused:
        print(refused)
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
"""

PRINT_AT_ONCE = """
import multiprocessing
def child(barrier, number):
    barrier.wait()
    for step in range(2000): print("child", number, "step", step, flush=True)
if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(2)
    children = [spawn.Process(target=child, args=(barrier, number)) for number in range(2)]
    for each in children: each.start()
    for each in children: each.join()
"""


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("x = 'a'\nx * 3", ["'aaa'"]),
        ("x = 'a'\nx * 3;", []),
        ("print('b')", ["b"]),
        ("import asyncio\nasync def f(): return 4\nawait f()", ["4"]),
        (SHOWS, [*SHOWN, "one bold", "two"]),
    ],
)
def test_the_last_expression_is_said_by_the_first_rank(
    home: Path, cell: str, lines: list[str]
) -> None:
    each = "print" in cell
    run = api.submit(cell, wait=True, ranks_per_replica=2)
    assert [line.text for line in final_lines(run.lines())] == lines * (2 if each else 1)


@pytest.mark.parametrize(("ranks", "kept"), [("first", [0, 0, 0]), ("all", [0, 0, 0, 1, 1, 1])])
def test_figures_that_are_shown_or_left_open_are_kept_of_rank_0_or_all(
    home: Path, monkeypatch: pytest.MonkeyPatch, ranks: str, kept: list[int]
) -> None:
    monkeypatch.setenv("DISPLAY", ":99")  # with which matplotlib itself would warn, obscurely
    run = api.submit(PLOTS, wait=True, ranks_per_replica=2, display=ranks)
    assert sorted(shown.rank for shown in run.displays) == kept
    assert all(str(shown.data["image/png"]).startswith("iVBORw0KGgo") for shown in run.displays)
    said = list(final_lines(run.lines()))
    assert {(line.process, line.stream) for line in said} == {(0, "o")}
    assert all(line.text.startswith("<Figure size ") for line in said)
    assert len(said) == 3, "a figure that was shown isn't shown again at the end"


MANY = """
import IPython.display as ipython
import pandas as pd, plotly.graph_objects as go
from PIL import Image
shown = display(Image.new("RGB", (2, 2)), display_id=True)
display("only text")
shown.update(Image.new("RGB", (3, 3)))
ipython.clear_output(wait=True)
handle = ipython.display(pd.DataFrame({"b": [2]}), display_id="table")
go.Figure(go.Bar(y=[1, 2])).show()
display(ipython.HTML("<b>page</b>"), ipython.HTML("x" * 5_000_000))
ipython.update_display(pd.DataFrame({"b": [3]}), display_id="table")
"""


def test_what_is_shown_is_kept_updated_and_cleared(home: Path) -> None:
    run = api.submit(MANY, wait=True)
    forms = [[form for form in shown.data if form != "text/plain"] for shown in run.displays]
    assert forms == [["text/html"], ["application/vnd.plotly.v1+json"], ["text/html"]]
    table = run.displays[0].data["text/html"]
    assert isinstance(table, str) and "<td>3</td>" in table and "<td>2</td>" not in table
    assert "text/html of 5.0 MB is left out: 4 MB are allowed" in run.logs()
    files = [path.name for path in run.folder.rglob("displays/**/*") if path.is_file()]
    assert len(files) == 3, "what was replaced takes no room"


def test_a_notebooks_progress_bar_is_one_of_text(home: Path) -> None:
    lines = [line.text for line in api.submit(BARS, wait=True).lines()]
    for end in ("loss: 100%|██████████| 3/3", "100%|██████████| 4/4", "100%|██████████| 5/5"):
        assert any(line.startswith(end) for line in lines)


def test_a_spawned_child_shows_and_refuses_as_its_rank_does(home: Path) -> None:
    run = api.submit(SPAWNS, wait=True)
    lines = [line.text for line in final_lines(run.lines()) if line.stream == "o"]
    shown, refused = lines
    assert shown == "'in a child'"
    assert "can't ask anyone in a run" in refused


def test_lines_of_spawned_children_stay_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    run = api.submit(PRINT_AT_ONCE, wait=True)
    expected = {f"child {number} step {step}" for number in range(2) for step in range(2000)}
    assert {line.text for line in final_lines(run.lines())} == expected


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("name = input('who? ')", "EOFError: input('who? ') can't ask anyone in a run"),
        ("import pdb; pdb.set_trace()", "RuntimeError: pdb.set_trace() can't ask anyone in a run"),
        ("import getpass; getpass.getpass()", "EOFError: getpass() can't ask anyone in a run"),
        ("breakpoint()", "RuntimeError: breakpoint() can't ask anyone in a run"),
    ],
)
def test_a_question_fails_with_what_to_do_instead(home: Path, cell: str, says: str) -> None:
    with pytest.raises(RunFailed) as failed:
        api.submit(cell, wait=True)
    assert says in str(failed.value)
