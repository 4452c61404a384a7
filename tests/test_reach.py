"""A change in a room is followed by the tests that can see it, and by no whole suite of a place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import reach, schedule, whole

pytestmark = pytest.mark.slow  # it parses the package and its tests

KERNEL = "tests/local/test_failures.py"
SLURM, RAY = "tests/slurm/test_jobs.py", "tests/ray/test_ray.py"
VERTEX, SAGEMAKER = "tests/vertex/test_whole_path.py", "tests/sagemaker/test_whole_path.py"
MONITOR = "tests/browser/test_monitor.py"
WORKER, LAYOUT = "tests/worker/test_log.py", "tests/layout/test_layout_sums.py"
CORE = (KERNEL, SLURM, RAY, VERTEX, SAGEMAKER, MONITOR)
# Of each room a file, with tests that have to run after a change of it, and some that can't see it.
ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "api/__init__.py": (CORE, ()),
    "backends/base.py": (CORE, ()),
    "certificates.py": (CORE, ()),
    "cluster/spec.py": (CORE, ()),
    "config.py": (CORE, ()),
    "data/__init__.py": (("tests/data/test_training.py",), ()),
    "errors.py": (CORE, ()),
    "escapes.py": (CORE, ()),
    "findings.py": (CORE, ()),
    "health/__init__.py": (("tests/test_health.py", KERNEL), ()),
    "image/layers.py": (("tests/image/test_append.py", VERTEX, SAGEMAKER), ()),
    "installed.py": (CORE, ()),
    "layout/layout.py": (CORE, ()),
    "layout/catalog/data/regions.csv": (CORE, ()),
    "magics/cell.py": ((KERNEL, MONITOR), ()),
    "mcp/tools.py": (("tests/test_mcp.py",), (KERNEL, SLURM, MONITOR)),
    "observed/observer.py": ((KERNEL, "tests/program/test_observed.py"), ()),
    "options.py": (CORE, ()),
    "places/ai_platform/terms.py": (("tests/layout/test_layout_rules.py",), (SLURM, RAY, KERNEL)),
    "places/kubernetes/forms.py": ((VERTEX, SAGEMAKER), (SLURM, RAY, KERNEL)),
    "places/local/backend.py": ((KERNEL, MONITOR), ()),
    "places/ray/plan.py": ((RAY,), (SLURM, VERTEX, SAGEMAKER, KERNEL, MONITOR)),
    "places/sagemaker/request.py": ((SAGEMAKER,), (SLURM, RAY, KERNEL, MONITOR)),
    "places/slurm/plan.py": ((SLURM,), (RAY, VERTEX, SAGEMAKER, KERNEL, MONITOR)),
    "places/vertex/request.py": ((VERTEX,), (SLURM, RAY, KERNEL, MONITOR)),
    "program/__init__.py": (CORE, ()),
    "rehearsal/__init__.py": ((VERTEX, SAGEMAKER), ()),
    "repairs.py": (CORE, ()),
    "run/summary.py": ((KERNEL, MONITOR), ()),
    "scratch.py": (CORE, ()),
    "secrets/named.py": (CORE, ()),
    "saved/document.py": (("tests/server/test_server.py", MONITOR), ()),
    "server/access.py": (("tests/server/test_server.py", MONITOR), ()),
    "study/study.py": (("tests/study/test_study.py",), ()),
    "study/process.py": (("tests/study/test_killed.py", "tests/study/test_study.py"), (WORKER,)),
    "tracking/notify.py": ((KERNEL, "tests/tracking/test_mlflow.py"), ()),
    "tuning/__init__.py": (("tests/study/test_study.py",), ()),
    "types.py": (CORE, ()),
    "ui/table.py": ((KERNEL, MONITOR), (WORKER, LAYOUT, "tests/local/test_crash.py")),
    "worker/rank/rank.py": (CORE, ()),
}


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "gc.auto=0")
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of this checkout, of which all is committed."""
    copy = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("static", "__pycache__", "node_modules")
    for folder in (*reach.FOLDERS, "docs"):
        shutil.copytree(reach.ROOT / folder, copy / folder, ignore=left_out)
    shutil.copy(reach.ROOT / "pyproject.toml", copy)
    git(copy, "init", "--quiet")
    git(copy, "add", "--force", ".")
    git(copy, "commit", "--quiet", "--message", "all")
    yield copy


@pytest.fixture(scope="module")
def code(checkout: Path) -> reach.Code:
    return reach.Code(checkout)


def after_a_change(checkout: Path, code: reach.Code, path: str) -> reach.Reached:
    """What has to run once a line of a file has changed."""
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    with (checkout / path).open("a") as file:
        file.write("\n# changed\n")
    try:
        changed = reach.changed_since("HEAD", checkout)
        assert changed == [path]
        return code.reached_by(changed)
    finally:
        git(checkout, "checkout", "--quiet", ".")
        git(checkout, "clean", "--quiet", "--force", "-d")


def test_each_room_is_here() -> None:
    names = {path.name for path in (reach.ROOT / reach.FRONT).glob("[!_]*")} - {"py.typed"}
    assert names == {path.split("/")[0] for path in ROOMS}
    places = {path.name for path in (reach.ROOT / reach.FRONT / "places").glob("[!_]*")}
    assert places == {path.split("/")[1] for path in ROOMS if path.startswith("places/")}


@pytest.mark.parametrize("path", ROOMS)
def test_a_changed_line_is_seen_by_its_tests(checkout: Path, code: reach.Code, path: str) -> None:
    seeing, blind = ROOMS[path]
    reached = after_a_change(checkout, code, f"{reach.FRONT}/{path}").files
    assert reached is not None
    assert reached >= {*seeing}
    assert not reached & {*blind}


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("tests/local/test_retries.py", {"tests/local/test_retries.py"}),
        ("docs/runs.md", set()),
        ("benchmarks/launch.py", set()),
        ("tests/durations.json", set()),
    ],
)
def test_a_change_beside_the_package(
    checkout: Path, code: reach.Code, path: str, files: set[str]
) -> None:
    assert after_a_change(checkout, code, path).files == files


def test_helpers_and_fixtures_concern_who_uses_them(checkout: Path, code: reach.Code) -> None:
    assert after_a_change(checkout, code, "tests/slurm/cluster.py").files >= {SLURM}
    conftest = after_a_change(checkout, code, "tests/ray/conftest.py").files
    assert conftest is not None and RAY in conftest and SLURM not in conftest
    page = after_a_change(checkout, code, "page/src/log/line.js").files
    assert page is not None and MONITOR in page and SLURM not in page


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "tests/conftest.py", "scripts/services.sh", "unheard/of.bin"]
)
def test_what_nobody_can_tell_concerns_all(checkout: Path, code: reach.Code, path: str) -> None:
    assert after_a_change(checkout, code, path).files is None


def test_a_module_that_is_gone_concerns_its_package(checkout: Path, code: reach.Code) -> None:
    reached = code.reached_by([f"{reach.FRONT}/places/slurm/gone.py"]).files
    assert reached is not None and SLURM in reached and RAY not in reached


def test_the_whole_run_on_record_counts_for_so_many_commits(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(commit: str) -> whole.WholeRun:
        made = whole.WholeRun(commit, "2026-11-29 12:00", 50.0)
        (checkout / whole.RECORD).write_text(json.dumps(vars(made)))
        return made

    try:
        (checkout / whole.RECORD).unlink(missing_ok=True)
        assert whole.to_run(checkout) == reach.Reached(None, "no whole run is on record")
        made = record(git(checkout, "rev-parse", "HEAD"))
        assert whole.last(checkout) == made
        assert whole.to_run(checkout).files == frozenset()  # the record itself concerns nobody
        git(checkout, "commit", "--quiet", "--allow-empty", "--message", "later")
        assert whole.to_run(checkout).files == frozenset()
        monkeypatch.setattr(whole, "COMMITS", 0)
        assert "1 commits old" in whole.to_run(checkout).reason
        record("0" * 40)
        assert "isn't in the history" in whole.to_run(checkout).reason
    finally:
        git(checkout, "checkout", "--quiet", ".")


SCHEDULED = """
from tests.schedule import LongestFirst

def pytest_xdist_make_scheduler(config, log):
    return LongestFirst(config, log)
"""


@pytest.mark.slow
def test_what_there_is_no_time_for_runs_first_the_next_time(tmp_path: Path) -> None:
    """A unit counts with a second for a test of which no duration is recorded."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(SCHEDULED)
    for name in ("short", "long"):
        folder = tmp_path / "tests" / name
        folder.mkdir(parents=True)
        count = 1 if name == "short" else 100
        (folder / f"test_{name}.py").write_text(
            f"import pytest\n\n@pytest.mark.parametrize('n', range({count}))\n"
            "def test_it(n):\n    with open('order', 'a') as file:\n"
            "        file.write(__name__[5:6])\n"
        )
    environment = {
        **os.environ,
        "PYTHONPATH": str(schedule.ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    def run(seconds: float) -> list[str]:
        subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadscope", "tests"],
            cwd=tmp_path, check=True, capture_output=True,
            env={**environment, schedule.UNTIL: str(time.time() + seconds)},
        )  # fmt: skip
        (left,) = (tmp_path / "cache").rglob("left.json")
        return list(json.loads(left.read_text()))

    assert run(60.0) == ["tests/long/test_long.py"]
    assert (tmp_path / "order").read_text() == "s"
    (tmp_path / "order").unlink()
    assert run(600.0) == []
    assert sorted(set((tmp_path / "order").read_text())) == ["l", "s"]
    assert (tmp_path / "order").read_text().startswith("l")
