"""Fixtures for all tests: a home of one's own, and kernels in it."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from weakref import ref

import hypothesis
import psutil
import pytest

from distrain_nb.observed import module_changes
from tests import fuzzing
from tests.kernels import PATIENT, Kernel, kernel
from tests.schedule import LongestFirst

# Threads of OpenMP spin while they wait, for one that other processes keep off the cores: four
# epochs of the quickstart take 5.0 CPU seconds on a busy machine then, and 0.5 so. OpenBLAS's spin
# for 30 ms when it is loaded. Kernels, ranks and nodes get these variables from here.
os.environ.update(PATIENT)

# MLflow's threads set and delete a variable for this: a rank that lists the environment meanwhile
# ends with a KeyError.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

# Inputs are drawn in as long as the other processes of a busy machine leave: that is no fault.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

# Nothing here needs it, and jsonschema, which nbclient imports, would take a second for it.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# What starts kernels, jobs, services, containers or a browser is marked as slow: these folders,
# what uses these fixtures, and what says so itself.
SLOW_FOLDERS = ("api", "browser", "embedding", "image", "local", "programs", "rehearsal", "server")
SLOW_FIXTURES = frozenset({"aws", "cloud", "engine", "images", "nb", "notebook", "slurm"})
SLOW_FILE = re.compile(r'^pytestmark = .*(\bslow\b|"engine")', re.MULTILINE)

# `make quick` runs the first selection, `make test` the second: what is quick, one real thing of
# each kind, which a test says that it stands for, and what starts little and is done at once.
# Of 20 faults planted by chance, four were found by such tests alone.
QUICK = "not slow"
SAMPLE = "not slow or stands_for or brief"
IN_SAMPLE = re.compile(r"\bmark\.(stands_for\(|brief\b)")


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst:
    return LongestFirst(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Quick tests leave less to chance, and TensorBoard and PyTorch's writer do without
    TensorFlow there, as where it isn't installed: it takes five seconds to import."""
    if config.option.markexpr in (QUICK, SAMPLE):
        fuzzing.be_quick()
        sys.modules["tensorboard.compat.notf"] = ModuleType("tensorboard.compat.notf")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what tests import out of the way of the garbage collector, which would pass it many
    times, and of observers of notebooks: to look at the suite's own modules before and after each
    statement takes 15 times as long as the rest of a test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        ours = f"{Path(__file__).parents[1]}/"  # modules of folders without a package have any name
        files = {name: str(getattr(m, "__file__", "")) for name, m in [*sys.modules.items()]}
        suite = [name for name, file in files.items() if file.startswith(ours)]
        module_changes._others.update({name: ref(sys.modules[name]) for name in suite})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What a selection leaves out whole is not imported: much of it imports clouds' SDKs."""
    selected = config.option.markexpr
    if selected not in (QUICK, SAMPLE):
        return None
    text = collection_path.read_text("utf-8") if collection_path.suffix == ".py" else ""
    if selected == SAMPLE and (collection_path.is_dir() or IN_SAMPLE.search(text)):
        return None
    return True if _folder(collection_path) in SLOW_FOLDERS or SLOW_FILE.search(text) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if _folder(item.path) in SLOW_FOLDERS or SLOW_FIXTURES.intersection(fixtures):
            item.add_marker(pytest.mark.slow)


def _folder(path: Path) -> str:
    """The folder of `tests` in which it is, or its own name there."""
    return next(iter(path.relative_to(Path(__file__).parent).parts), "")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DISTRAIN_HOME."""
    folder = tmp_path / "home"
    monkeypatch.setenv("DISTRAIN_HOME", str(folder))
    return folder


@pytest.fixture
def notebook_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return folder


@pytest.fixture
def nb(home: Path, notebook_folder: Path) -> Iterator[Kernel]:
    """A kernel with the extension loaded."""
    with kernel(notebook_folder, dict(os.environ)) as started:
        started.run("%load_ext distrain_nb")
        yield started


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a carrier sets in its process, which is the tests' where one is called directly."""
    for module in (sys, threading):
        monkeypatch.setattr(module, "excepthook", module.excepthook)


@pytest.fixture(scope="session", autouse=True)
def runtime_folder() -> Iterator[Path]:
    """Fork servers of our own: they outlive their kernels on purpose, but not the tests."""
    folder = Path(tempfile.mkdtemp(prefix="distrain-test-"))
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    yield folder
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def holding(folder: Path, text: str) -> list[Path]:
    """The files below a folder that have a text, of those that nobody removes meanwhile."""
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and text.encode() in path.read_bytes():
                found.append(path)
    return found


def eventually(condition: Callable[[], object], within: float = 60.0) -> bool:
    """Whether the condition comes true in time."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
