"""A job on a real Ray cluster that is stopped saves for as long as the documents say; a cluster
that asks for a token."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

import distrain_nb as d
from distrain_nb.backends.checks import Health
from distrain_nb.places.ray.cluster import about
from distrain_nb.places.ray.dashboard import LOGIN

from .conftest import TOKEN, RayCluster, wait_for

pytestmark = pytest.mark.slow  # it starts a cluster

SAVES_SLOWLY = """
import os, time
from distrain_nb import on_stop
@on_stop
def save():
    path = os.environ["AIP_CHECKPOINT_DIR"] + f"/s{os.environ['RANK']}"
    with open(path, "w") as file:
        for number in range(12):
            file.write(f"{number} ")
            file.flush()
            time.sleep(1)
        file.write("done")
    print("saved", flush=True)
print("begun", flush=True)
while True:
    time.sleep(0.1)
"""


@pytest.mark.parametrize("by", ["cancel", "ray"])
def test_there_is_time_to_save(cluster: RayCluster, home: Path, tmp_path: Path, by: str) -> None:
    options = cluster.options(cpus="0.5", folder=str(tmp_path / "shared"))
    run = d.submit(SAVES_SLOWLY, primary=1, **options)
    wait_for(lambda: "begun" in str(run.logs()), 900)
    if by == "cancel":
        run.cancel()
    else:
        job = json.loads((run.folder / "carrier.json").read_text())["job"]
        httpx.post(f"{cluster.address}/api/jobs/{job}/stop").raise_for_status()
    wait_for(lambda: run.state.final)
    assert str(run.state) == "cancelled"
    (saved,) = (tmp_path / "shared").glob("*/output/checkpoints/s0")
    assert saved.read_text().endswith("11 done")
    assert "[rank 0] saved" in str(run.logs())


def test_a_token_of_the_user_is_sent(
    guarded: RayCluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray asks for the one that it finds in the home folder, and takes it from there."""
    (check,) = about(guarded.address, {"HOME": "/"})
    assert check.state is Health.GOOD, check
    run = d.submit("print('hello')", primary=1, **guarded.options(cpus="1"))
    run.wait()
    assert "hello" in str(run.logs())
    assert not [p for p in home.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    (check,) = about(guarded.address, {"RAY_AUTH_MODE": "disabled"})
    assert check.state is Health.MISSING and "refuses the login (401)" in check.result
    assert check.remedy == LOGIN
    (finding,) = (f for f in d.check("1", **guarded.options()) if f.code == "ray.no-answer")
    assert LOGIN in finding.message
