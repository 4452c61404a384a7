"""By which name the notebook asks what a rank asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.magics.prompts import Attendant
from distrain_nb.run import Run, Store
from distrain_nb.worker.files.launch import Launch, ProcessSpec
from distrain_nb.worker.files.prompts import Asker

if TYPE_CHECKING:
    from pathlib import Path


def test_who_asks_before_the_status_has_it_is_named_as_planned(home: Path) -> None:
    """A process beyond those that were planned has its number."""
    run = Run(Store(home).add("asking", "local", "", ""))
    specs = tuple(ProcessSpec(f"rank {n}", "workers", n, n, {}) for n in range(2))
    Launch(specs, str(home)).write(run.folder)
    attendant = Attendant(run, lambda: None)
    labels = [attendant._label(Asker(number, 0)) for number in range(3)]
    assert labels == ["rank 0", "rank 1", "process 2"]
