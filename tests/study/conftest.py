"""Studies that several tests look at."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest

from distrain_nb import study
from distrain_nb.study import Study

# A bowl whose lowest point is at 0.3, seen better with each step.
BOWL = """\
from distrain_nb import log_metrics
for step in range(4):
    log_metrics({"val/loss": (x - 0.3) ** 2 + 1 / (step + 1)}, step=step)
weights = [x, width, optimizer, momentum]
"""


@pytest.fixture(scope="session")
def bowl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """A study that has ended: seven trials, two at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("bowl")))
        tuned = [
            "x=0.0..1.0",
            "width=16|32",
            "optimizer=sgd|adam",
            "momentum[optimizer=sgd]=0.5..0.9",
        ]
        initial = ["x=0.25,width=16,optimizer=adam"]
        yield study.tune(
            BOWL, tune=tuned, goal="min:val/loss", trials=7, parallel=2, search="tpe,seed=1",
            initial=initial, result="weights", name="bowl",
        ).wait(240)  # fmt: skip


@pytest.fixture
def bowl_home(bowl: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The same, for a test that looks its runs up."""
    monkeypatch.setenv("DISTRAIN_HOME", str(bowl.folder.parents[1]))
    return bowl


def process_of(found: Study) -> psutil.Process:
    """The process that owns a study."""
    owner = found.status.supervisor
    assert owner is not None and owner.pid != os.getpid()
    return psutil.Process(owner.pid)
