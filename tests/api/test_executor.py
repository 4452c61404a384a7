"""Functions with arguments, from a script and from a notebook without a magic cell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import Executor, api, remote
from distrain_nb.errors import CaptureError, OptionError
from tests.kernels import Kernel, kernel
from tests.program import sample

SCRIPT = '''
import distrain_nb

args = "the module's own"

class Point:
    def __init__(self, x):
        self.x = x

def train(rate, point, *, steps=1):
    print(args, rate)
    return {"loss": rate * point.x * steps}

@distrain_nb.remote(ranks_per_replica=2)
def shared(x):
    """Twice."""
    import os
    return (shared2(x), os.environ["WORLD_SIZE"])

@distrain_nb.remote
def shared2(x):
    return 2 * x

def fails():
    raise ValueError("boom")

if __name__ == "__main__":
    with distrain_nb.Executor(name="sweep") as executor:
        one = executor.submit(train, 0.5, Point(4), steps=3)
        runs = executor.map(train, [1, 2, 3], [Point(10), Point(20)])
        bad = executor.submit(fails)
    assert all(run.done() for run in executor.runs) and len(executor.runs) == 4
    assert one.result() == {"loss": 6.0} and one.logs() == "[rank 0] the module's own 0.5"
    assert [run.result()["loss"] for run in runs] == [10, 40]
    assert "boom" in str(bad.exception())
    assert shared(21) == (42, "2") and shared.__doc__ == "Twice."
    assert [run.result() for run in shared2.map([1, 2])] == [2, 4]
    del executor
    old = train
    def train(): pass
    try:
        distrain_nb.Executor().submit(old)
    except Exception as wrong:
        print("refused:", wrong)
'''

CELLS = """
base = 40
def add(x): return base + x
def train(x=2): return add(x)
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel in which nothing of ours has been loaded."""
    folder = tmp_path_factory.mktemp("notebook")
    with kernel(folder, {**os.environ, "DISTRAIN_HOME": str(folder / "home")}) as started:
        yield started


def test_a_script_submits_functions_with_arguments(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: cannot submit train: expected a function")


def test_the_first_submission_sees_the_notebook(notebook: Kernel) -> None:
    notebook.run(CELLS)
    code = "import distrain_nb\nrun = distrain_nb.submit('print(add(2))', wait=True)"
    assert not notebook.run(code).error
    assert notebook.run("print(run.logs())").text == "[rank 0] 42\n"
    told = notebook.run("run = distrain_nb.Executor().submit(train, 3)\nprint(await run)")
    assert told.text == "43\n", told


def test_a_decorated_function_of_a_notebook(notebook: Kernel) -> None:
    notebook.run(CELLS)
    notebook.run(
        "import distrain_nb\n@distrain_nb.remote()\ndef tell(x): return add(x), tell.__name__"
    )
    assert notebook.run("print(tell(1))").text == "(41, 'tell')\n"


def test_a_function_of_a_module_gives_its_value(home: Path) -> None:
    assert api.submit(sample.train, wait=True).results.named == ("result",)


def test_nothing_of_a_map_starts_where_one_can_not(home: Path) -> None:
    import threading

    executor = Executor()
    with pytest.raises(CaptureError, match="can't be captured"):
        executor.map(sample.train, [1, threading.Lock()])
    assert executor.runs == [] and api.runs() == []


def test_options_that_an_executor_has_no_use_for() -> None:
    for wrong in ({"wait": True}, {"dry_run": True}, {"worker": 2}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            Executor(**wrong)  # type: ignore[misc]
    with pytest.raises(OptionError, match="dry_run"):
        api.submit("pass", dry_run=True)


@pytest.mark.brief
def test_a_decorated_function_is_called_by_its_own_name() -> None:
    @remote
    def plain(x: int) -> int:
        """Return it."""
        return x

    @remote(ranks_per_replica=2)
    def shared(x: int) -> int:
        return x

    for function, name in ((plain, "plain"), (shared, "shared")):
        assert function.__name__ == name and callable(function.submit)
    assert plain.__doc__ == "Return it."
    with pytest.raises(OptionError, match="nowhere"):
        remote(nowhere=1)  # type: ignore[call-arg]
