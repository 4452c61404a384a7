"""What carriers do and meet is in the run's folder, bounded, and without secrets."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distrain_nb import __version__
from distrain_nb.backends.remote import carrier, carrier_log, variables
from distrain_nb.backends.remote.carrier_start import start_carrier
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.magics.lines import run_line
from distrain_nb.run import Run, Store
from distrain_nb.worker.files.folder import CARRIER_LOG, OLD_CARRIER_LOG, SUBMISSION_FILE
from distrain_nb.worker.files.status import State, Status
from tests.server.stored import stored_run

from .folder_service import FolderService

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "hf_" + "aB3dE5gH7jK9" * 3
RECORD = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ \d+ distrain_nb[\w.]*: "


def logged(run: Path, work: Callable[[], Any]) -> list[str]:
    """The lines of the log that a process leaves which does that work, and ends well."""

    def in_a_process() -> None:
        file = os.open(run / CARRIER_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        carrier_log.start(run)
        work()

    process = multiprocessing.get_context("fork").Process(target=in_a_process)
    process.start()
    process.join()
    assert process.exitcode == 0, carrier_log.read(run)
    return carrier_log.read(run).splitlines()


def carried(run: Path) -> list[str]:
    return logged(run, lambda: carrier.carry(run, {"service": "here"}))


def test_each_step_of_a_run_has_a_record(run: Path, service: FolderService) -> None:
    lines = carried(run)
    assert all(re.match(RECORD, line) for line in lines)
    said = [re.sub(RECORD, "", line) for line in lines]
    assert re.match(r"distrain-nb \S+ carries run run to folder", said[0])
    order = ["the service has the job: jobs/1", "running: running", "fetched event files",
             "fetched results", "succeeded: succeeded"]  # fmt: skip
    assert [line for line in said if line in order] == order


def test_trouble_has_its_traceback_once(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(range(5))
    observe = FolderService.observe

    def seldom(service: FolderService, job: str) -> Any:
        if next(looks, None) is not None:
            raise ConnectionError("no route to the service")
        return observe(service, job)

    monkeypatch.setattr(FolderService, "observe", seldom)
    text = "\n".join(carried(run))
    assert text.count("WARNING") == text.count("Traceback (most recent call last)") == 1
    assert "in seldom" in text
    assert Status.read(run).state is State.SUCCEEDED


def test_secrets_are_not_in_it(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables.store_variables({"PASSWORD": "open sesame", "ONE": "1"}, run)

    def refuse(service: FolderService, request: Any) -> str:
        raise DistrainError(f"'open sesame' is no value of PASSWORD\nnor is {TOKEN} of TOKEN")

    monkeypatch.setattr(FolderService, "create", refuse)
    text = "\n".join(carried(run))
    assert "'***' is no value of PASSWORD\nnor is ***\n" in text
    assert "sesame" not in text
    assert TOKEN not in text
    assert f"distrain-nb {__version__} carries" in text  # a value as short as 1 is no secret


def test_it_is_bounded_and_goes_on_with_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrier_log, "MOST_BYTES", 4096)

    def work() -> None:
        for number in range(200):
            logging.getLogger("distrain_nb.test").info("record %d", number)
            os.write(2, b"printed %d\n" % number)

    lines = logged(tmp_path, work)
    assert lines[-2].endswith("record 199")
    assert lines[-1] == "printed 199"
    kept = [int(line.rpartition(" ")[2]) for line in lines if line.startswith("printed")]
    assert kept == list(range(kept[0], 200))
    for name in (CARRIER_LOG, OLD_CARRIER_LOG):
        assert 0 < (tmp_path / name).stat().st_size <= 4096 + 100


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "home"))
    return Store()


def test_a_carrier_that_ended_badly_says_why(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(store.add("odd", "vertex", "", ""))
    (run.folder / SUBMISSION_FILE).write_text('{"backend": "vertex", "told": [], "processes": []}')
    Status(State.STARTING).enter(State.STARTING).write(run.folder)
    start_carrier(run.folder).wait()
    assert run.state is State.FAILED
    assert f"`%distrain logs {run.id} --carrier` shows where" in run.status.error
    said = run.carrier_log()
    assert re.match(RECORD, said)
    assert "Traceback (most recent call last)" in said
    shell, line = InteractiveShell(), ["logs", str(run.id), "--carrier"]
    run_line(line, shell)
    assert capsys.readouterr().out == said
    with pytest.raises(OptionError, match="--carrier can't be combined"):
        run_line([*line, "--rank", "0"], shell)


@pytest.mark.slow  # starts a carrier, which imports the rehearsal
def test_a_rehearsal_whose_services_do_not_start_fails_and_says_why(store: Store) -> None:
    run = Run(store.add("odd", "vertex", "", "", handle={"rehearsal": True}))
    Submission("vertex", {"bucket": "mine"}, (), rehearse="nonsense").write(run.folder)
    Status(State.STARTING).enter(State.STARTING).write(run.folder)
    start_carrier(run.folder).wait()
    assert run.state is State.FAILED
    assert "nonsense" in run.status.error
    assert "Traceback (most recent call last)" in run.carrier_log()


def test_a_run_of_this_machine_has_no_carrier(store: Store) -> None:
    run = stored_run(store)
    with pytest.raises(
        OptionError, match=f"run {run.id} has no background process: it runs on this machine"
    ):
        run.carrier_log()
