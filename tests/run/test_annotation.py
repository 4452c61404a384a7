"""Notes, tags and code of runs: kept in their folders, compared, and in frames."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from distrain_nb.errors import OptionError, StoreError
from distrain_nb.options import read
from distrain_nb.run import Run, Store
from distrain_nb.run.annotation import Annotation
from distrain_nb.run.pages.code import MOST_SHOWN, differences
from distrain_nb.run.pages.compare import compare
from distrain_nb.run.pages.compared_rows import differing, rows
from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.run_list import RunList
from distrain_nb.server import table
from distrain_nb.ui.compare import ComparisonView
from distrain_nb.worker.files.status import Owner, State, Status

MARKUP = '<img src=x onerror="alert(1)">'


def ended(store: Store, main: str = "", **options: list[str]) -> Run:
    """A run that has succeeded, with this program."""
    record = store.add("", "local", "", "", options)
    Status(State.SUCCEEDED, times={"succeeded": time.time()}).write(record.folder)
    if main:
        (record.folder / "program").mkdir()
        (record.folder / "program" / "main.py").write_text(main, encoding="utf-8")
    return Run(record)


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


def test_a_run_keeps_a_note_and_tags(store: Store) -> None:
    run = ended(store, tag=["a, b", "a"])
    assert (run.note, run.tags) == ("", ("a", "b"))  # those of `--tag`
    run.note = "  diverges from step 400 "
    run.tags = ["good", *run.tags]
    again = Run(store.get(str(run.id)))
    assert (again.note, again.tags) == ("diverges from step 400", ("good", "a", "b"))
    run.tags = ()
    assert (run.note, run.tags) == ("diverges from step 400", ())


@pytest.mark.parametrize(
    "tags", [["x" * 65], ["two\nlines"], [f"tag-{n}" for n in range(21)]], ids=str
)
def test_what_is_no_tag_is_refused_also_as_an_option(store: Store, tags: list[str]) -> None:
    run = ended(store)
    with pytest.raises(OptionError, match=r"invalid tag|21 tags are too many"):
        run.tags = tags
    with pytest.raises(OptionError, match=r"invalid tag|21 tags are too many"):
        read({"tag": tuple(tags)})
    with pytest.raises(OptionError, match="2,001 characters; at most 2,000"):
        run.note = "x" * 2_001
    assert Annotation.read(run.folder) == Annotation()


def test_a_store_that_cannot_be_written_says_so(store: Store) -> None:
    run = ended(store)
    (run.folder / "annotation.json").mkdir()  # root may write into folders that are closed
    with pytest.raises(StoreError, match=rf"run {run.id} keeps its note and tags: .*annotation"):
        run.note = "lost"
    assert run.note == ""


def test_a_list_has_what_was_changed_after_the_end(store: Store) -> None:
    run, listing = ended(store), Listing()
    assert listing.read([run])[0].as_json()["annotation"] == {"note": "", "tags": []}
    run.note, run.tags = "first", ("one",)
    assert listing.read([run])[0].as_json()["annotation"] == {"note": "first", "tags": ["one"]}
    frame = RunList([run]).frame
    assert frame.loc[run.id, ["tags", "note"]].tolist() == ["one", "first"]


def test_a_damaged_or_newer_file_hides_no_run(store: Store) -> None:
    run = ended(store)
    file = run.folder / "annotation.json"
    for text in ("{", '{"note": 3}', "[]"):
        file.write_text(text, encoding="utf-8")
        assert (run.note, str(run.state)) == ("", "succeeded")
    file.write_text(json.dumps({"note": "n", "tags": ["t"], "later": 1}), encoding="utf-8")
    assert (run.note, run.tags) == ("n", ("t",))


CELL = '# Cell In[{}] as a program\nimport os\nlr = {}\ntext = "{}"\nprint(lr)\n'


def test_a_changed_line_of_the_cell_is_among_what_differs(store: Store) -> None:
    slow = ended(store, CELL.format(3, 0.1, MARKUP), package=["python==3.11.2", "numpy==1.26"])
    fast = ended(store, CELL.format(9, 0.2, MARKUP), package=["python==3.11.2", "numpy==2.0"])
    compared = compare([slow, fast])
    assert set(differing(compared.settings)) == {"code", "package numpy"}
    changed = [line for line in compared.diff.splitlines() if line[:1] in "+-"]
    assert changed[2:] == ["-lr = 0.1", "+lr = 0.2"]
    assert changed[0] == f"--- {slow.name} #{slow.id}/main.py"
    view = ComparisonView(compared)
    assert "-lr = 0.1\n+lr = 0.2" in repr(view)
    page = view.still()
    assert '<span class="dn-added">+lr = 0.2</span>' in page
    assert "<img" not in page
    told = table.compared_runs(store, {"runs": f"{slow.id},{fast.id}"})
    assert told["diff"] == compared.diff
    assert next(row for row in rows(compared) if row.name == "package numpy").texts == (
        "1.26",
        "2.0",
    )


def test_the_same_code_of_another_cell_is_no_difference(store: Store) -> None:
    one, other = (ended(store, CELL.format(number, 0.1, "")) for number in (3, 4))
    gone = ended(store)  # a job of a cloud's own SDK has no code here
    compared = compare([gone, one, other])
    assert compared.diff == ""
    assert [row["code"] for row in compared.settings][1:] == [compared.settings[1]["code"]] * 2


def test_code_is_shown_without_secrets_and_cut(store: Store) -> None:
    secret = "hunter2-and-more-9f3a"
    one = ended(store, f'password = "{secret}"\n')
    other = ended(store, "x = 1\n" * 2_000)
    diff = compare([one, other]).diff
    assert secret not in diff
    assert "-password = '***'" in diff
    assert len(diff.splitlines()) == MOST_SHOWN + 1
    assert diff.endswith("more lines")
    assert differences((), ()) == ""


def test_a_note_that_is_changed_while_a_run_goes_on_is_in_its_summary(store: Store) -> None:
    from distrain_nb.run.pages.answers import answer

    run = ended(store)
    Status(State.RUNNING, supervisor=Owner.of(1)).write(run.folder)
    run.note = MARKUP
    assert answer(run, "summary", {})["annotation"] == {"note": MARKUP, "tags": []}
