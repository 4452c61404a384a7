"""What a job left and its carrier could not fetch is fetched when somebody asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.errors import RunNotReady
from distrain_nb.run.store import Store
from distrain_nb.worker.files.status import State
from distrain_nb.worker.rank import values
from tests import guests
from tests.kernels import Kernel, kernel

from .folder_service import LINES, FolderBackend, FolderService, new_run

pytestmark = pytest.mark.slow

RUN = "night"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The backend of folders is known to every process."""
    with guests.installed(FolderBackend, tmp_path / "site", monkeypatch):
        yield


@pytest.fixture
def ended(home: Path, service: FolderService, installed: None) -> Path:
    """The folder of a run that has succeeded when its results could not be fetched."""
    values.dump({"value": 42}, service.folder / "results")
    (service.folder / "reached").write_text(str(LINES))
    (service.folder / "away").touch()
    folder = new_run(Store().add(RUN, "folder", "", "").folder, service)
    carrier.carry(folder, {"service": "here"})
    run = api.attach(RUN)
    assert run.state is State.SUCCEEDED
    assert f"`%distrain attach {folder.name}` fetches them again" in run.status.note
    assert list(Journal.read(folder).missing) == ["event files", "results"]
    return folder


def test_results_that_are_still_away_are_not_taken_for_none(ended: Path) -> None:
    with pytest.raises(RunNotReady, match="can't be fetched: ConnectionResetError: dropped"):
        dict(api.attach(RUN).results)
    assert Journal.read(ended).missing and api.attach(RUN).status.note


def results_of(_: Kernel) -> str:
    return str(api.attach(RUN).results["value"])


def result(nb: Kernel) -> str:
    assert not nb.run(f"%distrain result {RUN} --into").error
    return nb.run("print(value)").text.strip()


def attach(nb: Kernel) -> str:
    assert not nb.run(f"%distrain attach {RUN}").error
    return ""


@pytest.mark.parametrize(("ask", "given"), [(results_of, "42"), (result, "42"), (attach, "")])
def test_whoever_asks_has_them_fetched(
    ended: Path,
    service: FolderService,
    notebook_folder: Path,
    ask: Callable[[Kernel], str],
    given: str,
) -> None:
    (service.folder / "away").unlink()
    with kernel(notebook_folder, dict(os.environ)) as nb:
        nb.run("%load_ext distrain_nb")
        assert ask(nb) == given
    run = api.attach(RUN)
    assert (run.state, run.status.note) == (State.SUCCEEDED, "")
    assert not Journal.read(ended).missing
    assert (ended / "results" / "index.json").exists()
    assert list(run.metrics()["loss"].dropna().unique()) == [1.0]
