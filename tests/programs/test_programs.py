"""What torchrun, mpirun or TensorFlow runs, a cell runs, with the same numbers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.rank.values import VALUES_FOLDER
from scripts.horovod_wheel import wheel
from tests.kernels import Kernel, kernel
from tests.programs import expected, running
from tests.programs.running import Program, programs, results
from tests.programs.table import PAGE, row
from tests.tensorflow_cells import leave_out

pytestmark = pytest.mark.timeout(2400)  # Horovod may have to be built
every = pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
STAND_FOR = {
    "libraries/accelerate_loop": "Accelerate",
    "libraries/fabric": "Lightning",
    "libraries/lightgbm_ranks": "LightGBM",
    "libraries/transformers_loop": "transformers",
    "libraries/xgboost_ranks": "XGBoost",
    "mpi/horovod_mnist": "Horovod",
    "pytorch/ddp": "PyTorch, torchrun's launcher",
    "pytorch/fully_shard": "shards of PyTorch",
}
IN_ONE_CELL = {"pytorch/ddp": "a program in a single cell"}


def some_in_quick_runs(kinds: Mapping[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "program",
        [
            pytest.param(
                program,
                id=program.name,
                marks=[pytest.mark.stands_for(kinds[program.name])]
                if program.name in kinds
                else [],
            )
            for program in programs()
        ],
    )


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Results of programs by their own commands, each run once, where there is no record."""

    class Known(dict[str, list[Any]]):
        def __missing__(self, name: str) -> list[Any]:
            program = Program(running.HERE / f"{name}.py")
            self[name] = running.as_its_author_does(program, tmp_path_factory.mktemp("own"))
            assert self[name], f"{name} prints no result"
            expected.record(program, self[name])
            return self[name]

    yield Known()


@pytest.fixture(scope="module")
def spread() -> dict[str, str]:
    """Texts of the programs of spread cells that have run, by name."""
    return {}


@pytest.fixture(scope="session")
def horovod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that Horovod can be imported from; it is built where that has not been done."""
    folder = tmp_path_factory.mktemp("horovod") / "site-packages"
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def no_tensorflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without TensorFlow: TensorBoard's writer takes six seconds to import it, does
    without, and is mostly used where there is none."""
    folder = tmp_path_factory.mktemp("no-tensorflow")
    (folder / "tensorflow.py").write_text("raise ImportError\n")
    return folder


@pytest.fixture(scope="session")
def only_tensorflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without what TensorFlow and Keras import where it is there."""
    return leave_out(tmp_path_factory.mktemp("only-tensorflow"))


@pytest.fixture(autouse=True)
def packages(
    program: Program, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program's environment has more, or less, than this one, however it is started."""
    for text, fixture in (
        ("import horovod", "horovod"),
        ("SummaryWriter", "no_tensorflow"),
        ("import tensorflow", "only_tensorflow"),
    ):
        if text in program.text:
            monkeypatch.setenv("PYTHONPATH", str(request.getfixturevalue(fixture)))


@pytest.fixture
def nb(tmp_path: Path, home: Path) -> Iterator[Kernel]:
    with kernel(tmp_path, {**os.environ, **running.VARIABLES}) as started:
        started.run("%load_ext distrain_nb")
        yield started


@pytest.fixture
def same(program: Program, by_command: dict[str, list[Any]]) -> Callable[[list[Any]], None]:
    """Compare results with those on record; if they differ, with a run by its author's command."""

    def compare(results: list[Any]) -> None:
        known = expected.recorded(program)
        if known is None or results != _rounded(known):
            assert results == _rounded(by_command[program.name])

    return compare


def _rounded(value: Any) -> Any:
    """Make what is equal but for rounding: who adds first isn't the same each time."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-6)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return {k: _rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def run_cell(nb: Kernel, program: Program, cell: str) -> list[Any]:
    outcome = nb.run(f"%%distrain {program.options}\n{cell}", timeout=running.WITHIN_S)
    assert not outcome.error, outcome.traceback
    assert "warning " not in outcome.text and "error " not in outcome.text, outcome.text
    return results(api.attach().logs())


@some_in_quick_runs(IN_ONE_CELL)
def test_in_one_cell(program: Program, nb: Kernel, same: Callable[[list[Any]], None]) -> None:
    same(run_cell(nb, program, program.text))


@some_in_quick_runs(STAND_FOR)
def test_in_cells(
    program: Program, nb: Kernel, same: Callable[[list[Any]], None], spread: dict[str, str]
) -> None:
    """Spread: definitions in cells of their own, then the training."""
    *before, last = program.cells
    for cell in before:
        outcome = nb.run(cell)
        assert not outcome.error, outcome.traceback
    same(run_cell(nb, program, last))
    ran = api.attach().folder / PROGRAM_FOLDER
    if not (ran / VALUES_FOLDER).exists():
        spread[program.name] = (ran / "main.py").read_text("utf-8")


@every
def test_as_a_function(
    program: Program,
    home: Path,
    tmp_path: Path,
    same: Callable[[list[Any]], None],
    spread: dict[str, str],
) -> None:
    """Submitted from a script: run if it isn't the program that ran as spread cells."""
    results, findings = running.as_function(program, tmp_path, spread.get(program.name, ""))
    assert not findings
    if results is not None:
        same(results)


@every
def test_the_page_of_compatible_programs_has_it(program: Program) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8"), "run python -m tests.programs.table"
