"""What `--data` names: in arguments, in variables, and what nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api, script
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding
from tests.backends.test_uploads import SAGEMAKER, VERTEX, digest

READS = """
import argparse, multiprocessing, os

parser = argparse.ArgumentParser()
parser.add_argument("--train", default=os.environ["SM_CHANNEL_TRAIN"])
parser.add_argument("--one")

def read(path):
    assert path.startswith(os.environ["SM_CHANNEL_TRAIN"])
    return open(path).read()

if __name__ == "__main__":
    args = parser.parse_args()
    said = sorted(os.listdir(args.train)), args.one and read(args.one)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        said += (pool.apply(read, [args.train + "/b c.txt"]),)
"""


@pytest.fixture
def images(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my images"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "b c.txt").write_text("b c")
    (tmp_path / "train.py").write_text(READS)
    monkeypatch.chdir(tmp_path)
    return folder


def unread(code: api.Code, **options: Any) -> list[Finding]:
    return [each for each in api.check(code, **options) if each.code == "capture.unused-name"]


def test_a_script_reads_data_by_an_argument_or_by_a_variable(images: Path) -> None:
    for arguments, one in (((), None), (("--train", "data:train", "--one=data:train/a.txt"), "a")):
        code = script("train.py", *arguments)
        run = api.submit(code, data="train=./my images", result="said", wait=True)
        assert run.results["said"] == (["a.txt", "b c.txt"], one, "b c")
        assert run.options.get("args", []) == ([" ".join(arguments)] if arguments else [])


def test_it_is_the_path_of_the_place_where_the_job_runs(images: Path) -> None:
    code = script("train.py", "--train", "data:train", "--two", "[data:train,data:train/x]")
    uploaded = f"/gcs/b/distrain/data/{digest(images)}"
    for where, place, variables in (
        ({}, str(images), {"SM_CHANNEL_TRAIN": str(images)}),
        (VERTEX, uploaded, {"SM_CHANNEL_TRAIN": uploaded}),
        (SAGEMAKER, "/opt/ml/input/data/train", {}),  # the service sets its own
    ):
        prepared = api.prepare(code, data="train=my images", **where)
        program = prepared.job.program
        assert program.arguments == ("--train", place, "--two", f"[{place},{place}/x]")
        assert program.variables == variables
        assert all(f"{name}={path}" in str(prepared) for name, path in variables.items())


def test_a_cell_gets_its_arguments_so_too(images: Path) -> None:
    cell = "import sys\nsaid = open(sys.argv[1]).read()"
    options = {"args": ["data:train/a.txt"], "data": f"train={images}"}
    assert api.submit(cell, result="said", wait=True, **options).results["said"] == "a"
    assert unread(cell, **options) == []
    assert unread("import os; os.environ['SM_CHANNEL_TRAIN']", data=f"train={images}") == []
    (found,) = unread("1", data=f"train={images}")
    assert found.where == "train"


def test_other_words_stay_as_they_are(images: Path) -> None:
    words = ("data:text/plain,x", "metadata:train", "x:data:train", "data", "data:training,data:x")
    prepared = api.prepare(script("train.py", *words), data=f"train={images}")
    assert prepared.job.program.arguments == words
    for word in ("data:trian", "--train=data:trian"):
        with pytest.raises(OptionError, match="no --data has the name of data:trian; did you mean"):
            api.check(script("train.py", word), data=f"train={images}")
    with pytest.raises(OptionError, match="data:train: add --data train=URI"):
        api.check(script("train.py", "data:train"))


def test_a_uri_with_data_in_it_is_no_name(images: Path) -> None:
    words = ("--uri", "data:image/png;base64,iVBO", "--like=data:image/svg+xml;charset=utf-8,%3C")
    options = {"data": f"image={images}"}
    prepared = api.prepare(script("train.py", *words, "data:image/a,data:image/b"), **options)
    assert prepared.job.program.arguments == (*words, f"{images}/a,{images}/b")
    prepared = api.prepare(script("train.py", *words))
    assert prepared.job.program.arguments == words


def test_data_that_a_script_has_no_use_for(images: Path) -> None:
    Path("deaf.py").write_text("import argparse\nimport hears\n")
    Path("hears.py").write_text("")
    (found,) = unread(
        script("deaf.py", "data:more"), data=[f"{n}={images}" for n in ("train", "more")]
    )
    assert found.where == "--data train"
    assert "write data:train" in found.message and "SM_CHANNEL_TRAIN" in found.message
    assert unread(script("deaf.py"), data=f"train={images}", **SAGEMAKER) == []  # a channel
    Path("hears.py").write_text("import os\nhere = os.environ['SM_CHANNEL_TRAIN']")
    assert unread(script("deaf.py"), data=f"train={images}") == []
