"""A carrier that is killed, at every point there is: one job, every line once, the right end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.remote.submission import Journal
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.run.log.reader import LogReader
from distrain_nb.run.metrics.events import Key, scalars
from distrain_nb.worker.files.folder import LINKS_FILE
from distrain_nb.worker.files.status import State, Status, request_cancel
from distrain_nb.worker.rank import values
from tests.conftest import eventually
from tests.image.services.bases import BaseImage
from tests.sagemaker import jobs as of_sagemaker
from tests.vertex import jobs as of_vertex

from .conftest import PARENT, cloud_with
from .crashing import Crashing, another, points, run_of, stacks
from .training_jobs import standing_in, troubled

LINES = [f"line {n}" for n in range(20)]
RESULTS = ("total",)
PROGRAM = """
from distrain_nb import log_metrics
for n in range(20):
    print("line", n)
    log_metrics(step=n, loss=n / 2)
total = 42
"""
ENDLESS = "import time\nprint('ready')\ntime.sleep(600)"

_VERTEX = {
    "JOB_STATE_SUCCEEDED": State.SUCCEEDED,
    "JOB_STATE_CANCELLED": State.CANCELLED,
    "JOB_STATE_FAILED": State.FAILED,
}
_SAGEMAKER = {
    "Completed": State.SUCCEEDED,
    "Stopped": State.CANCELLED,
    "Failed": State.FAILED,
}


@pytest.fixture(scope="module")
def nobody(home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No container engine answers, so replicas start in a fraction of a second."""
    patch = pytest.MonkeyPatch()
    patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('docker') / 'nobody'}")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def vertex(nobody: None, small: BaseImage) -> Iterator[Crashing]:
    with cloud_with(small) as cloud:

        def jobs(run: str) -> list[State]:
            asked = {"parent": PARENT, "filter": f'labels.distrain_run="{run}"'}
            found = cloud.jobs.list_custom_jobs(asked)
            return [_VERTEX.get(job.state.name, State.RUNNING) for job in found]

        def planned(code: str) -> Any:
            layout = Layout.of("vertex", primary="n1-standard-4", region="us-central1")
            options = {"base": cloud.base}
            job = of_vertex.job(layout, code, results=RESULTS, rehearse="", options=options)
            return VertexBackend().plan(job)

        yield Crashing("vertex", planned, cloud.endpoints, jobs)


@pytest.fixture(scope="module")
def sagemaker(nobody: None, small: BaseImage) -> Iterator[Crashing]:
    # a job that is stopped while Python starts doesn't hear it, and would have 120 s more
    with standing_in(small) as running, troubled(*running) as aws:

        def jobs(run: str) -> list[State]:
            asked = {"NameContains": run}
            found = aws.client("sagemaker").list_training_jobs(**asked)["TrainingJobSummaries"]
            return [_SAGEMAKER.get(job["TrainingJobStatus"], State.RUNNING) for job in found]

        def planned(code: str) -> Any:
            layout = Layout.of("sagemaker", workers="ml.m5.xlarge", region="eu-west-1")
            options = {"base": aws.base}
            job = of_sagemaker.job(layout, code, results=RESULTS, rehearse="", options=options)
            return SageMakerBackend().plan(job)

        yield Crashing("sagemaker", planned, aws.endpoints, jobs)


@pytest.fixture(params=["vertex", "sagemaker"])
def crashing(request: pytest.FixtureRequest) -> Crashing:
    found: Crashing = request.getfixturevalue(request.param)
    return found


def killed_in(crashing: Crashing) -> str:
    """Where carriers are killed: on Vertex AI everywhere, on SageMaker in what is its own."""
    return "" if crashing.backend == "vertex" else crashing.room


def carry_after_its_end(crashing: Crashing, run: Path, point: int) -> None:
    """Carry a run whose job ends while nobody follows it: all that it leaves is fetched then. Its
    carrier is killed at a point at which the job is there."""
    assert crashing.carry(run, point)
    assert crashing.jobs(run_of(run))
    ended = eventually(lambda: all(state.final for state in crashing.jobs(run_of(run))), within=60)
    assert ended, crashing.jobs(run_of(run))
    crashing.carry(run)


def test_what_one_cloud_is_not_killed_in_is_what_the_other_is(
    vertex: Crashing, sagemaker: Crashing, tmp_path: Path
) -> None:
    """The points between calls of SageMaker's own code are points of Vertex AI's carriers too."""
    known = reached_by(vertex, tmp_path / "vertex")  # first: it finds no base in the cache
    shared = {s for s in reached_by(sagemaker, tmp_path / "sagemaker") if sagemaker.room not in s}
    assert shared
    for number in range(3):  # which calls lead to a point differs with what is there at a look
        shared -= known
        if not shared:
            return
        known = reached_by(vertex, tmp_path / f"vertex-{number}")
    raise AssertionError(shared)


def reached_by(crashing: Crashing, folder: Path) -> set[str]:
    """Return the calls that lead to the points of two runs."""
    # So long that lines are fetched before the last ones: other calls lead to those.
    lasting = f"{PROGRAM}\nimport time; time.sleep(2)"
    folder.mkdir()
    run = crashing.new_run(folder / "lasting", lasting)
    crashing.carry(run)
    late = crashing.new_run(folder / "late", PROGRAM)
    followed = next(n for n, stack in enumerate(stacks(run), 1) if ":_follow " in stack)
    carry_after_its_end(crashing, late, followed)
    return {*stacks(run), *stacks(late)}


def test_killed_at_every_point_and_gone_on(crashing: Crashing, tmp_path: Path) -> None:
    run = crashing.new_run(tmp_path / "run", PROGRAM)
    kills = crashing.killed_at_each_point(run, killed_in(crashing))
    assert kills > (60 if crashing.backend == "vertex" else 20), points(run)
    status = Status.read(run)
    assert (status.state, status.error, status.note) == (State.SUCCEEDED, "", "")
    assert crashing.jobs(run_of(run)) == [State.SUCCEEDED]
    lines = list(LogReader(run))
    assert [line.text for line in lines if line.process == 0] == LINES
    others = [line.text for line in lines if line.process]
    assert sorted(others) == sorted(set(others))
    assert [each.label for each in status.processes] == Journal.read(run).labels
    assert list(scalars(run / "tensorboard")[Key("", "loss")]["step"]) == list(range(20))
    assert values.load(run / "results", ["total"]) == {"total": 42}


def test_killed_at_every_point_then_stopped(crashing: Crashing, tmp_path: Path) -> None:
    """From staging to the first observation; all are stopped at once, as a service takes long."""
    staged = crashing.staged(tmp_path / "staged", ENDLESS)
    runs: list[Path] = []
    while not (runs and (runs[-1] / LINKS_FILE).exists()):
        point = len(runs) + 1
        runs.append(another(staged, f"{point:03}"))
        assert crashing.carry(runs[-1], point, killed_in(crashing))
    for run in runs:
        request_cancel(run)
    carriers = [crashing.start(run) for run in runs]
    for point, (run, carrier) in enumerate(zip(runs, carriers, strict=True)):
        assert not crashing.killed(run, carrier)
        at = points(run)[point]
        assert Status.read(run).state is State.CANCELLED, at
        assert crashing.jobs(run_of(run)) in ([], [State.CANCELLED]), at
    assert crashing.jobs(run_of(runs[-1])) == [State.CANCELLED]
