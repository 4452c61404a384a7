"""What torchrun, mpirun or TensorFlow runs, a cell runs, with the same numbers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from scripts.horovod_wheel import wheel
from tests.kernels import Kernel, kernel
from tests.programs import running
from tests.programs.running import Program, programs, results
from tests.programs.table import PAGE, row

pytestmark = pytest.mark.timeout(2400)  # Horovod may have to be built
every = pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Results of programs by their own commands, each run once."""

    class Known(dict[str, list[Any]]):
        def __missing__(self, name: str) -> list[Any]:
            program = Program(running.HERE / f"{name}.py")
            self[name] = running.as_its_author_does(program, tmp_path_factory.mktemp("own"))
            assert self[name], f"{name} prints no result"
            return self[name]

    yield Known()


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


@pytest.fixture(autouse=True)
def packages(
    program: Program, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program's environment has more, or less, than this one, however it is started."""
    for text, fixture in (("import horovod", "horovod"), ("SummaryWriter", "no_tensorflow")):
        if text in program.text:
            monkeypatch.setenv("PYTHONPATH", str(request.getfixturevalue(fixture)))


@pytest.fixture
def nb(tmp_path: Path, home: Path) -> Iterator[Kernel]:
    with kernel(tmp_path, {**os.environ, **running.VARIABLES}) as started:
        started.run("%load_ext distrain_nb")
        yield started


def same(found: list[Any], expected: list[Any]) -> None:
    """Equal but for rounding: who adds first isn't the same each time."""
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        assert _rounded(one) == _rounded(other)


def _rounded(value: Any) -> Any:
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


@every
def test_in_cells(program: Program, nb: Kernel, expected: dict[str, list[Any]]) -> None:
    """Whole in one cell, then spread: definitions in cells of their own, then the training."""
    same(run_cell(nb, program, program.text), expected[program.name])
    *before, last = program.cells
    for cell in before:
        outcome = nb.run(cell)
        assert not outcome.error, outcome.traceback
    same(run_cell(nb, program, last), expected[program.name])


@every
def test_as_a_function(
    program: Program, home: Path, tmp_path: Path, expected: dict[str, list[Any]]
) -> None:
    found, findings = running.as_function(program, tmp_path)
    same(found, expected[program.name])
    assert not findings


@every
def test_the_page_of_compatible_programs_has_it(program: Program) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8"), "run python -m tests.programs.table"
