"""Names of runs on a real Slurm cluster: each works, or is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.errors import OptionError
from distrain_nb.places.slurm.service import LEFT_WITHIN_S
from distrain_nb.places.slurm.states import start_failure
from tests.conftest import eventually
from tests.odd_names import ALLOWED, REFUSED
from tests.slurm.cluster import Cluster

pytestmark = pytest.mark.slow


def test_every_name_works_or_is_refused(slurm: Cluster, work: Path, tmp_path: Path) -> None:
    """All at once. A folder of jobs may have odd signs in its name too."""
    jobs = tmp_path / "jobs $(touch PLANTED) 50%j 'a' \"b\" #1"
    runs = {
        name: d.submit(
            "print('hello')", on="slurm", workers=1, cpus=1, name=name, jobs_folder=str(jobs)
        )
        for name in ALLOWED
    }
    assert eventually(lambda: all(run.state.final for run in runs.values()), within=400)
    for name, run in runs.items():
        assert str(run.state) == "succeeded", (name, run.status.error)
        assert "hello" in str(run.logs()), name
        assert run.name == name or not name
    folders = [path for path in jobs.iterdir() if (path / "said").is_file()]
    assert len(folders) == len(ALLOWED) == len(list(jobs.iterdir()))
    assert not list(tmp_path.rglob("PLANTED"))
    for name in REFUSED:
        with pytest.raises(OptionError, match="--name"):
            d.submit("1", on="slurm", workers=1, name=name)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"python": "/no/python"}, "the nodes can't start /no/python (--python): No such file"),
        ({"python": "/bin/false"}, "no replica came up: "),
    ],
    ids=["not there", "of another kind"],
)
def test_what_cannot_be_started_is_named_at_once(
    slurm: Cluster, work: Path, options: dict[str, str], cause: str
) -> None:
    run = d.submit("1", on="slurm", workers=1, cpus=1, **options)
    assert eventually(lambda: run.state.final, within=60)
    assert run.status.error.startswith(cause), run.status.error
    times = run.status.times
    assert times["failed"] - times.get("running", times["starting"]) < LEFT_WITHIN_S


def test_causes_of_a_start() -> None:
    printed = "slurmstepd: error: execve(): apptainer: No such file or directory\nsrun: error: x\n"
    missing = "the nodes can't start apptainer (--container): No such file or directory"
    assert start_failure(printed) == missing
    assert start_failure("FATAL: no image\nsrun: error: y") == "no replica came up: FATAL: no image"
