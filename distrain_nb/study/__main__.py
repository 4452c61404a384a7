"""`python -m distrain_nb.study FOLDER`: own the study of that folder to its end."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.carrier import give_up
from distrain_nb.backends.remote.lock import NoLock, run_as_owner
from distrain_nb.errors import DistrainError
from distrain_nb.study.files import StudyFile, TrialState, read_trials
from distrain_nb.study.full_disk import is_caused_by_full_disk, wait_for_room
from distrain_nb.study.launching import trial_run
from distrain_nb.worker.files.reserve import OF_STUDY, give_up_reserve, reserve
from distrain_nb.worker.files.status import State, Status


def main(folder: Path) -> None:
    """Own the study until it ends; return at once if another process owns it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run_as_owner(folder, partial(_own_study, folder))
    except NoLock as error:
        if not Status.read(folder).state.final:
            _fail(folder, str(error))


def _own_study(folder: Path) -> None:
    try:
        _carry(folder)
    except Exception as error:
        traceback.print_exc()
        if (carried := _on_a_service(folder)) is not None:
            return give_up(carried, error, ends_with_us=False)
        with suppress(Exception):
            _stop_trials(folder)
        expected = isinstance(error, DistrainError)
        _fail(folder, str(error) if expected else f"{type(error).__name__}: {error}")
    finally:
        give_up_reserve(folder)


def _fail(folder: Path, message: str) -> None:
    Status.read(folder).enter(State.FAILED, "failed", error=message).write(folder)


def _carry(folder: Path) -> None:
    from distrain_nb.study.service import carry, service_of

    if service_of(StudyFile.read(folder).backend) is not None:
        return carry(folder)
    from distrain_nb.study.process import StudyProcess

    while True:
        with suppress(OSError):
            reserve(folder, OF_STUDY)
        try:
            return StudyProcess(folder).run()
        except (DistrainError, OSError) as error:
            if not is_caused_by_full_disk(error, folder):
                raise
            with suppress(OSError):  # its own log may have no room either
                traceback.print_exc()
        _say(folder, f"the disk of {folder} is full: the study goes on when there is room")
        wait_for_room(folder, lambda: _cancel_runs(folder))


def _say(folder: Path, note: str) -> None:
    """Note it beside the study's state, as far as there is room for that."""
    with suppress(OSError):
        replace(Status.read(folder), note=note).write(folder)


def _on_a_service(folder: Path) -> CarriedRun | None:
    """Return the study, if a service may have its tuning job, which goes on without us."""
    with suppress(Exception):
        carried = CarriedRun(folder)
        return carried if carried.may_be_there else None
    return None


def _stop_trials(folder: Path) -> None:
    """Nobody would count them."""
    _cancel_runs(folder)
    for trial in read_trials(folder):
        if not trial.state.final:
            why = "the process of its study failed"
            replace(trial, state=TrialState.CANCELLED, why=why, end=time.time()).write(folder)


def _cancel_runs(folder: Path) -> None:
    """Cancel the runs of trials that have not ended, as far as there are any."""
    for trial in read_trials(folder):
        with suppress(DistrainError, OSError):
            run = None if trial.state.final else trial_run(trial)
            if run is not None:
                run.cancel()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
