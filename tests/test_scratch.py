"""Folders that a process needs while it lives, and what a killed one leaves."""

from __future__ import annotations

import ast
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.builders import uv
from distrain_nb.scratch import PREFIX, Scratch, sweep
from tests.conftest import eventually

PACKAGE = Path(__file__).parents[1] / "distrain_nb"
HOLDER = """
import time
from distrain_nb.scratch import Scratch
print(Scratch("holder").path, flush=True)
time.sleep(600)
"""
FORKING = """
import os, time
from distrain_nb.scratch import Scratch
held = Scratch("forking")
(held.path / "file").write_text("x")
if os.fork():
    print(held.path, flush=True)
time.sleep(600)
"""
BUILD = """
import sys
from distrain_nb.image.builders.append import build
from distrain_nb.image.recipe import Recipe
from tests.image.programs import SimpleProgram
build(SimpleProgram(), Recipe(base=sys.argv[1] + "/base:1", target=sys.argv[1] + "/job:1"))
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder for this test alone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@contextmanager
def python(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(
        command, cwd=PACKAGE.parent, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    with process.stdout, process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def holder() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a folder."""
    with python(HOLDER) as process:
        assert process.stdout
        yield process, Path(process.stdout.readline().strip())


def test_a_folder_is_gone_when_it_is_closed(temporary: Path) -> None:
    with Scratch("here") as folder:
        assert folder.parent == temporary and folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("x")
    assert list(temporary.iterdir()) == []


def test_a_renamed_folder_stays(temporary: Path) -> None:
    scratch = Scratch("draft")
    (scratch.path / "file").write_text("x")
    scratch.path.rename(temporary / "kept")
    scratch.close()
    sweep(temporary)
    assert (temporary / "kept" / "file").read_text() == "x"


def test_what_a_killed_process_leaves_goes_and_what_a_living_one_has_stays(
    temporary: Path,
) -> None:
    with holder() as (killed, left), holder() as (_, kept):
        assert left.is_dir() and kept.is_dir()
        killed.kill()
        killed.wait()
        assert left.is_dir()
        with python("from distrain_nb.scratch import Scratch; Scratch('next').close()") as after:
            assert after.wait() == 0
        assert not left.exists() and kept.is_dir()


def test_a_killed_build_leaves_nothing_to_the_next_process(temporary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with python(BUILD, address) as build:
            connection, _ = silent.accept()  # it asks for its base now
            assert any(temporary.glob(f"{PREFIX}image-*"))
            build.kill()
            build.wait()
            connection.close()
    sweep(temporary)
    assert list(temporary.iterdir()) == []


def test_what_resolves_packages_leaves_nothing(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    python = uv.Python("3.11", "x86_64-unknown-linux-gnu")
    assert uv.resolve(["numpy==2.2.0"], python, {"numpy": "2.2.0"}) == ()
    with pytest.raises(ImageError):
        uv.resolve(["numpy==2.2.1"], python, {"numpy": "2.2.0"})
    assert list(temporary.iterdir()) == []


def test_a_forked_child_keeps_its_parents_folder(temporary: Path) -> None:
    with python(FORKING) as parent:
        assert parent.stdout
        folder = Path(parent.stdout.readline().strip())
        parent.kill()
        parent.wait()
        sweep(temporary)
        assert (folder / "file").exists()
        os.killpg(parent.pid, signal.SIGKILL)
        assert eventually(lambda: sweep(temporary) or not folder.exists())


def test_links_files_and_others_folders_are_left_alone(temporary: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("x")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}file").write_text("x")
    (temporary / "other").mkdir()
    kept = {f"{PREFIX}link", f"{PREFIX}file", "other"}
    if os.geteuid() == 0:
        foreign = temporary / f"{PREFIX}foreign"
        foreign.mkdir()
        os.chown(foreign, 12345, 12345)
        kept.add(foreign.name)
    sweep(temporary)
    assert {path.name for path in temporary.iterdir()} == kept
    assert (elsewhere / "file").exists()


def test_folders_without_the_right_to_write_go_too(temporary: Path) -> None:
    """As in images. The superuser may write everywhere, unless it drops that right."""
    folder = temporary / f"{PREFIX}root-1"
    (folder / "etc" / "deep").mkdir(parents=True)
    (folder / "etc" / "deep" / "file").write_text("x")
    for path in (folder / "etc" / "deep", folder / "etc"):
        path.chmod(0o500)
    limited = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    code = "from distrain_nb.scratch import Scratch; Scratch('next').close()"
    command = [*(limited if os.geteuid() == 0 else ()), sys.executable, "-c", code]
    subprocess.run(command, cwd=PACKAGE.parent, check=True)
    assert not folder.exists()


@pytest.mark.parametrize("module, name", [(os, "open"), (fcntl, "flock")])
def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    module: ModuleType, name: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its creation and its lock nobody holds it."""
    before = getattr(module, name)
    swept = []

    def sweeping_first(*arguments: Any, **options: Any) -> Any:
        if not swept:
            swept.extend(temporary.iterdir())
            sweep(temporary)
        return before(*arguments, **options)

    monkeypatch.setattr(module, name, sweeping_first)
    with Scratch("again") as folder:
        assert swept and folder not in swept and folder.is_dir()


def test_nothing_else_of_ours_makes_temporary_folders_that_nobody_sweeps() -> None:
    """The worker's end with its container, or are below a folder of the rehearsal's."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    makers = {
        path.relative_to(PACKAGE).as_posix()
        for path, text in texts.items()
        if "tempfile" in text  # most files needn't be parsed
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("tempfile.mkdtemp", "tempfile.TemporaryDirectory")
        and not any("_scratch.path" in ast.unparse(keyword) for keyword in node.keywords)
    }
    assert makers == {
        *("scratch.py", "worker/driver.py", "worker/replica/container.py"),
        "places/ray/replica.py",  # on a node of the cluster, as long as its actor
    }
