"""A run as a future, as an awaitable, and its log by rank."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import RunCancelled, RunFailed
from distrain_nb.run import Run

pytestmark = pytest.mark.brief


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """A run that succeeds, one that fails, and one that ends when it is cancelled."""
    patch = pytest.MonkeyPatch()
    patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
    endless = api.submit("import time\nprint('on', flush=True)\ntime.sleep(600)")
    yield {
        "good": api.submit("total = 6 * 7", result="total"),
        "bad": api.submit("raise ValueError('boom')\nx = 1", result="x"),
        "endless": endless,
    }
    endless.cancel()
    assert endless.exception(60)
    patch.undo()


def test_futures_complete_as_their_runs_end(runs: dict[str, Run]) -> None:
    futures = {run.future(): name for name, run in runs.items()}
    ended = zip(range(2), as_completed(futures, 60), strict=False)
    first = [futures[future] for _, future in ended]
    assert sorted(first) == ["bad", "good"]
    done, pending = wait(futures, timeout=0, return_when=FIRST_COMPLETED)
    assert [futures[future] for future in pending] == ["endless"]
    by_name = {futures[future]: future for future in done}
    assert by_name["good"].result()["total"] == 42
    assert isinstance(by_name["bad"].exception(), RunFailed)


def test_results_and_exceptions_are_waited_for(runs: dict[str, Run]) -> None:
    assert runs["good"].result(60)["total"] == 42
    assert runs["good"].exception(60) is None and runs["good"].done()
    with pytest.raises(RunFailed, match="boom"):
        runs["bad"].result(60)
    assert "boom" in str(runs["bad"].exception(60))
    with pytest.raises(KeyError, match=r"run . failed: .*boom.* It returned nothing"):
        runs["bad"].results["x"]
    with pytest.raises(KeyError, match=r"run . returned total.* name 'y' with --result"):
        runs["good"].results["y"]
    assert not runs["endless"].done()
    with pytest.raises(TimeoutError):
        runs["endless"].result(0.1)


def test_a_run_is_awaited_while_the_loop_goes_on(runs: dict[str, Run]) -> None:
    async def both() -> None:
        good, bad = await asyncio.gather(runs["good"], runs["bad"], return_exceptions=True)
        assert good["total"] == 42 and isinstance(bad, RunFailed)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(runs["endless"], 0.1)

    asyncio.run(both())
    assert not runs["endless"].done(), "who stops waiting leaves the run alone"


def test_a_cancelled_run_is_an_exception(home: Path) -> None:
    run = api.submit("import time; time.sleep(600)")
    future = run.future()
    assert not future.cancel()
    run.cancel()
    assert isinstance(future.exception(60), RunCancelled)


def test_ranks_are_counted_without_parameter_servers(home: Path) -> None:
    code = "import os\nprint('rank', os.environ.get('RANK'))"
    run = api.submit(code, workers=1, servers=1, launcher="python", wait=True)
    labels = [process.label for process in run.status.processes]
    assert len(labels) == 3
    for rank in (0, 1):
        assert run.logs(rank) == f"[rank {rank}] rank {rank}"
    with pytest.raises(ValueError, match=r"no rank 2; its ranks are 0 to 1"):
        run.logs(2)
