"""The suite's own machinery: what fails is run again and listed, and the longest starts first."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests import schedule, suite

FLAKY = """
from itertools import pairwise
from pathlib import Path

def test_steady():
    pass

def test_flaky():
    before = Path("before")
    first = not before.exists()
    before.touch()
    assert not first, "no luck at the first try"
"""
BROKEN = """
def test_broken():
    assert 1 + 1 == 3
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite's command on the tests of another folder."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "tests.suite", "--workers", "1", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(schedule.ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_failure_by_chance_is_listed_and_the_run_is_green(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    listed = (tmp_path / "out" / "flaky.txt").read_text()
    assert listed in done.stdout
    assert suite.HEADING in listed and "test_one::test_flaky" in listed
    assert "no luck at the first try" in listed and "test_steady" not in listed


@pytest.mark.slow
def test_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY)
    (tmp_path / "test_two.py").write_text(BROKEN)
    done = run(tmp_path)
    assert done.returncode == suite.FAILED
    assert "1 failed, 1 passed" in done.stdout  # the second time
    assert not (tmp_path / "out" / "flaky.txt").exists()


@pytest.mark.slow
def test_without_reruns_the_first_failure_counts(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY)
    done = run(tmp_path, "--reruns", "0")
    assert done.returncode == suite.FAILED
    assert suite.HEADING not in done.stdout


def test_a_process_goes_on_with_what_it_has_started() -> None:
    image, vertex, other = "tests/image/test_a.py", "tests/vertex/test_b.py", "tests/ui/test_c.py"
    waiting = {image: 5.0, vertex: 9.0, other: 7.0}
    assert schedule.choose(waiting, [], set()) == vertex
    assert schedule.choose(waiting, ["image"], {"image"}) == image
    assert schedule.choose(waiting, [], {"sagemaker"}) == other
    assert schedule.choose({image: 5.0, vertex: 9.0}, [], {"image", "sagemaker"}) == vertex


def test_another_commit_begins_with_other_files() -> None:
    """Where the time doesn't suffice for all, no test is always among those that are left out."""
    waiting = {f"tests/{name}/test_{name}.py": 1.0 + place for place, name in enumerate("abcdefgh")}
    commits = [f"{number:040x}" for number in range(100)]
    assert {schedule.choose(waiting, [], set(), commit) for commit in commits} == {*waiting}


def test_durations_are_those_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = {
        ("tests.ui.test_a", "test_x"): 1.0,
        ("tests.ui.test_a", "test_y"): 2.0,
        ("tests.image.test_b", "test_x[1]"): 30.0,
        ("tests.image.test_b", "test_y"): 1.0,
        ("tests.image.test_b", "test_z"): 0.5,
        ("tests.programs.test_programs", "test_in_cells[mpi/a]"): 4.0,
        ("tests.programs.test_programs", "test_as_a_function[mpi/a]"): 3.0,
    }
    lines = [f'<testcase classname="{c}" name="{n}" time="{t}"/>' for (c, n), t in cases.items()]
    report.write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
    assert schedule.durations(report) == {
        "[mpi/a]": 7.0,
        "tests/image/test_b.py": {"": 1.5, "test_x[1]": 30.0},
        "tests/ui/test_a.py": 3.0,
    }


def test_no_two_modules_of_tests_have_one_name() -> None:
    """Pytest collects only one of them, unless their folders are packages."""
    modules = [
        p for p in schedule.TESTS.rglob("test_*.py") if not (p.parent / "__init__.py").exists()
    ]
    names = sorted(path.name for path in modules)
    assert [name for name, following in pairwise(names) if name == following] == []


def test_what_is_waited_for_is_asserted() -> None:
    """A wait that ends without its condition cost a test its 120 seconds, and it passed."""
    for path in schedule.TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                called = ast.unparse(node.value.func)
                assert called != "eventually", f"{path.name}:{node.lineno}: assert it"
