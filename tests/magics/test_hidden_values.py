"""What a notebook keeps of a cell that can't run has no value that only its variables had."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kernels import Kernel, Outcome, kernel

TOKEN = "hf_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7"
PLAIN = "correct-horse-battery"
LONG = PLAIN * 40
APART = "alpha-one bravo-two"
VERTEX = "%%distrain --on vertex --primary n1-standard-4 --rehearse --no-wait"

# Each with a line of what is shown: what the author wrote.
REFUSED = {
    "a token": (f"{VERTEX} --env HF_TOKEN={{token}}\n1", "1 │ {}"),
    "a token, with $": (f"{VERTEX} --env HF_TOKEN=$token\n1", "1 │ {}"),
    "an option": (f"{VERTEX} --env MINE={{plain}} --nonsense\n1", "1 │ {}"),
    "a machine": (
        "%%distrain --on vertex --primary n1-standrd-4 --env MINE={plain}\n1",
        "%%distrain --on vertex --primary n1-standard-4 --env MINE={plain}",
    ),
    "here": ("%%distrain --env=MINE={plain}\n1", "1 │ {}"),
    "a study": (f"{VERTEX} --env MINE={{plain}} --tune lr=1..0 --goal min:loss\n1", "1 │ {}"),
    "a name": (f"{VERTEX} --env MINE={{plain}}\nprint(np)", "1 │ {}"),
    "a quote": (f"{VERTEX} --env MINE={{plain}} --name 'a\n1", "--env MINE=*** --name 'a"),
    "two words": (f"{VERTEX} --env MINE={{apart}}\n1", "unexpected '***'"),
    "two words, quoted": (
        f"{VERTEX} --env 'MINE={{apart}}' alpha-one\n1",
        "unexpected 'alpha-one'",
    ),
    "another option": (f"{VERTEX} --envv=MINE={{plain}}\n1", "1 │ {}"),
    "more lines": (f"\n{VERTEX} \\\n  --env MINE={{plain}} --nonsense\n1", "2 │   --env MINE=***"),
    "a long one": (
        "%%distrain --on sagemaker --workers 2*ml.m5.xlarge --rehearse --env MINE={long}\n1",
        "the value of MINE has 840 characters",
    ),
    "a script": ("%distrain run \\\n  --on vertex --env MINE={plain} --nonsense a.py", "1 │ %"),
    "run by code": (
        "get_ipython().run_cell_magic('distrain', f'--env MINE={plain} --nonsense', '1')",
        "1 │ %%distrain --env MINE=*** --nonsense",
    ),
}


@pytest.fixture(scope="module")
def nb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("hidden")
    given = {"DISTRAIN_HOME": str(folder / "home"), "GOOGLE_CLOUD_PROJECT": "my-project"}
    with kernel(folder, {**os.environ, **given}) as started:
        started.run("%load_ext distrain_nb")
        started.run(f"token, plain, long, apart = {(TOKEN, PLAIN, LONG, APART)!r}")
        yield started


def kept(outcome: Outcome) -> str:
    """All that a notebook keeps of a cell's outputs."""
    shown = [each for bundle in outcome.displays for each in bundle.values()]
    return "\n".join([outcome.text, *map(str, shown), outcome.error, outcome.traceback])


@pytest.mark.parametrize("on_a_page", [False, True], ids=["text", "page"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_report_has_the_text_as_it_was_written(nb: Kernel, case: str, on_a_page: bool) -> None:
    cell, line = REFUSED[case]
    outcome = nb.outcome(nb.send(cell, on_a_page))
    said = kept(outcome)
    assert outcome.error
    assert line.format(cell.partition("\n")[0]) in said if "{}" in line else line in said
    assert not [each for each in (TOKEN, PLAIN, APART, "bravo-two") if each in said], said
    assert bool(outcome.displays) is on_a_page


def test_a_warning_has_no_value(nb: Kernel) -> None:
    nb.run("from distrain_nb.backends.remote import backend; backend.start_carrier = print")
    cell = f"{VERTEX} --env MINE={{plain}} --image gcr.io/p/mine:1\ndef f(): np\n1"
    outcome = nb.outcome(nb.send(cell, on_a_page=True))
    said = kept(outcome)
    assert not outcome.error, said
    assert "--env MINE=***" in said
    assert PLAIN not in said
    (stored,) = [
        path
        for path in (nb.folder / "home").rglob("*")
        if path.is_file() and PLAIN.encode() in path.read_bytes()
    ]
    assert stored.name == "variables.json"
