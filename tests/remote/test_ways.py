"""One guard before anything is staged, whichever way the code travels, and wherever it goes."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.backends.remote import backend
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.errors import CheckFailed, ImageError
from distrain_nb.magics.command_line import cell_options

pytestmark = [pytest.mark.slow, pytest.mark.brief]

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WAYS = {
    "vertex, an image": {"on": "vertex", "primary": "n1-standard-4"},
    "vertex, a package": {
        "on": "vertex",
        "primary": "n1-standard-4",
        "python_package": True,
        "base": "europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
    },
    "vertex, files": {
        "on": "vertex",
        "primary": "n1-standard-4",
        "image": "europe-docker.pkg.dev/p/r/mine:1",
    },
    "sagemaker, an image": {"on": "sagemaker", "workers": "2*ml.m5.xlarge"},
    "sagemaker, an archive": {
        "on": "sagemaker",
        "workers": "2*ml.m5.xlarge",
        "python_package": True,
        "framework": "pytorch-2.6",
    },
    "sagemaker, files": {
        "on": "sagemaker",
        "workers": "2*ml.m5.xlarge",
        "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/mine:1",
    },
}
SOURCE = "import secretive\nprint(secretive)"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of runs whose carriers would have started: none does."""
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "secretive"
    package.mkdir()
    (package / "__init__.py").write_text(f"import os\n\ntoken = '{TOKEN}'\n")
    (package / ".env").write_text("A=1")
    (package / ".git-credentials").write_text("https://ada:pw@example.com")
    folders: list[Path] = []
    monkeypatch.setattr(backend, "start_carrier", lambda folder: folders.append(folder))
    return folders


@pytest.mark.parametrize("way", WAYS)
def test_a_local_package_with_secrets_stays_here(way: str, started: list[Path]) -> None:
    with pytest.raises(CheckFailed) as caught:
        api.submit(SOURCE, rehearse="", **WAYS[way])
    places = {finding.where for finding in caught.value.findings}
    files = {"secretive/.env", "secretive/.git-credentials"}
    assert places == {*files, "secretive/__init__.py, line 3"}
    assert TOKEN not in str(caught.value)
    assert not started
    assert not list(api.runs())


@pytest.mark.parametrize("way", WAYS)
def test_what_was_asked_for_goes_as_it_was_asked_for(way: str, started: list[Path]) -> None:
    api.submit("import numpy", rehearse="", require=("numpy==1.26.4", "rich"), **WAYS[way])
    spec = Submission.read(started[0]).spec
    assert spec["required"] == ["numpy==1.26.4", "rich"]
    assert spec["requirements"] == [f"numpy=={version('numpy')}"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_allowed_by_name_goes_and_is_remembered_nowhere(
    way: str, started: list[Path], tmp_path: Path
) -> None:
    allowed = ("secretive/.env", "secretive/.git-credentials", "secretive/__init__.py")
    api.submit(SOURCE, rehearse="", allow_secret=allowed, **WAYS[way])
    (folder,) = started
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [p for p in kept if b"git-credentials" in p.read_bytes() and p.name != "__init__.py"]
    with pytest.raises(CheckFailed):
        api.submit(SOURCE, rehearse="", **WAYS[way])
    assert started == [folder]


def test_a_value_given_by_an_option_is_looked_at_too(started: list[Path]) -> None:
    with pytest.raises(CheckFailed, match="key: looks like a GitHub token") as caught:
        api.submit("print(key)", rehearse="", param=f"key={TOKEN}", **WAYS["vertex, files"])
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("option", ["env", "hyperparameter", "label"])
def test_what_the_request_says_openly_is_looked_at_too(option: str, started: list[Path]) -> None:
    told = {option: f"there={TOKEN}"}
    with pytest.raises(CheckFailed, match="there: looks like a GitHub token"):
        api.submit("print(1)", rehearse="", **told, **WAYS["sagemaker, files"])


@pytest.mark.parametrize(
    ("option", "text", "place"),
    [
        ("name", TOKEN, "--name"),
        ("require", "a @ git+https://ada:f4k7-wq2@git.corp.net/a/b.git", "--require"),
        ("metric", f"loss=({TOKEN})", "--metric"),
        ("args", "--password=f4k7wq2x9", "main.args, line 1"),
    ],
)
def test_every_option_is_looked_at_too(
    option: str, text: str, place: str, started: list[Path]
) -> None:
    with pytest.raises(CheckFailed, match=f"{place}: looks like ") as caught:
        api.submit("print(1)", rehearse="", **{option: text}, **WAYS["sagemaker, files"])
    assert text not in str(caught.value)
    assert not started


def test_a_requirement_that_is_refused_is_shown_without_its_login(started: list[Path]) -> None:
    with pytest.raises(ImageError, match="invalid requirement") as caught:
        text = "git+https://ada:f4k7-wq2@git.corp.net/a/b.git"
        api.submit("print(1)", rehearse="", require=text, **WAYS["sagemaker, files"])
    assert "f4k7" not in str(caught.value)


def test_the_magic_takes_the_option_that_the_message_names() -> None:
    words = ["--on", "vertex", "--allow-secret", "secretive/.env", "--allow-secret", "key"]
    options = cell_options(words)
    assert options is not None
    assert options["allow_secret"] == ["secretive/.env", "key"]


def test_a_run_on_this_machine_takes_its_files_as_they_are(started: list[Path]) -> None:
    run = api.submit(SOURCE, on="local", allow_secret="secretive/.env", wait=True)
    assert run.state.final
