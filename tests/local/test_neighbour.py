"""Another user of this machine reads nothing of ours, replaces nothing, and plants nothing."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distrain_nb import api, rehearsal
from distrain_nb.config import Config
from distrain_nb.errors import RunCancelled, StoreError
from distrain_nb.layout.catalog.current import current
from distrain_nb.run import Store
from tests.conftest import eventually
from tests.neighbour import NEIGHBOUR, as_neighbour
from tests.server.stored import stored_run


@pytest.fixture
def root() -> None:
    if os.geteuid():
        pytest.fail("needs root: it acts as a second user of this machine")


@pytest.fixture
def shared(root: None) -> Iterator[Path]:
    """A folder like /tmp, which everybody may enter and write in."""
    folder = Path(tempfile.mkdtemp(prefix="distrain-shared-"))
    folder.chmod(0o1777)
    yield folder

    def removed() -> bool:
        shutil.rmtree(folder, ignore_errors=True)  # a supervisor may be tidying up in it
        return not folder.exists()

    assert eventually(removed)


@pytest.fixture
def home(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DISTRAIN_HOME in the midst of strangers, for a user whose files the group may write."""
    monkeypatch.setenv("DISTRAIN_HOME", str(shared / "home"))
    return shared / "home"


@pytest.fixture
def group_writes() -> Iterator[None]:
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.fixture
def common_tmp(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No runtime folder of the user's own: sockets go where everybody's temporary files are."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return shared / f"distrain-{os.getuid()}"


def quick_to_go() -> None:
    """Let fork servers end soon after their runs."""
    Config().changed("idle", 1, {}).save()


def deeds(path: Path) -> dict[str, Callable[[], object]]:
    """What a neighbour may try with a file or folder of ours."""
    return {
        "read": lambda: os.listdir(path) if path.is_dir() else path.read_bytes(),  # noqa: PTH208
        "look": path.lstat,
        "write": lambda: (path / "x" if path.is_dir() else path).write_bytes(b"theirs"),
        "replace": lambda: path.rename(path.with_name("theirs")),
        "remove": lambda: path.rmdir() if path.is_dir() else path.unlink(),
        "close": lambda: path.chmod(0o777),
    }


def test_nothing_can_be_read_or_replaced(home: Path, shared: Path, group_writes: None) -> None:
    quick_to_go()
    (shared / "open").write_text("")
    assert as_neighbour((shared / "open").read_text) == "", "the neighbour gets as far as here"
    assert as_neighbour(lambda: (shared / "own").write_text("")) == ""
    code = "import numpy as np\nprint('secret', flush=True)\ntotal = np.arange(3)"
    api.submit(code, result="total", wait=True, include=[str(shared / "open")])
    ours = [path for path in home.rglob("*") if not path.is_symlink()]
    names = {path.name for path in ours}
    assert {"record.json", "log.tsv", "main.py", "status.json", "objects.pickle", "open"} <= names
    for path in ours:
        for what, deed in deeds(path).items():
            assert as_neighbour(deed) == "PermissionError", (what, path)
    assert as_neighbour(lambda: os.listdir(home)) == "PermissionError"  # noqa: PTH208
    assert as_neighbour(lambda: home.rename(shared / "taken")) == "PermissionError"


def test_a_store_that_was_open_is_closed_by_looking(home: Path) -> None:
    run = stored_run(Store(home), "secret\n")
    for folder in (home, home / "runs", run.folder):
        folder.chmod(0o755)
    log = run.folder / "log.tsv"
    assert as_neighbour(log.read_bytes) == "", "an earlier version left it so"
    assert [each.id for each in api.runs()] == [run.id]
    assert as_neighbour(log.read_bytes) == "PermissionError"


def plant_folder(home: Path) -> None:
    home.mkdir(mode=0o777)
    (home / "config.yaml").write_text("grace: 7\n")
    (home / "catalog.yaml").write_text("regions: 7\n")
    (home / "runs").mkdir()


def plant_link(home: Path) -> None:
    plant_folder(home.with_name("elsewhere"))
    home.symlink_to(home.with_name("elsewhere"))


@pytest.mark.parametrize("plant", [plant_folder, plant_link])
def test_a_planted_store_is_not_opened(home: Path, plant: Callable[[Path], None]) -> None:
    assert as_neighbour(lambda: plant(home)) == ""
    before = sorted(path.name for path in home.iterdir())
    for deed in (api.runs, api.attach, Config.load, lambda: api.submit("1"), Config().save):
        with pytest.raises(StoreError, match=r"another user \(uid 65534\).*DISTRAIN_HOME"):
            deed()
    with pytest.raises(StoreError, match="another user"):
        current()
    assert sorted(path.name for path in home.iterdir()) == before


def plant_link_to_socket_folder(folder: Path) -> None:
    folder.with_name("theirs").mkdir(mode=0o777)
    folder.symlink_to(folder.with_name("theirs"))


@pytest.mark.parametrize(
    "plant", [lambda folder: folder.mkdir(mode=0o777), plant_link_to_socket_folder]
)
def test_a_planted_runtime_folder_is_not_used(
    home: Path, common_tmp: Path, plant: Callable[[Path], None]
) -> None:
    quick_to_go()
    assert as_neighbour(lambda: plant(common_tmp)) == ""
    run = api.submit("print('done')", wait=True)
    assert run.logs() == "[rank 0] done"
    assert list(common_tmp.iterdir()) == []


def test_a_fork_server_hears_nobody_else(home: Path, common_tmp: Path) -> None:
    quick_to_go()
    run = api.submit("import time; print('on', flush=True); time.sleep(600)")
    assert eventually(run.logs)
    sockets = [path for path in common_tmp.iterdir() if stat.S_ISSOCK(path.stat().st_mode)]
    assert sockets

    def connect() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect(str(sockets[0]))

    connect()
    assert as_neighbour(connect) == "PermissionError"
    run.cancel()
    with pytest.raises(RunCancelled):
        run.wait(60)


def test_a_rehearsal_s_buckets_and_layers_are_closed(home: Path, common_tmp: Path) -> None:
    """They are made where there is no store yet, too."""
    before = set(common_tmp.parent.iterdir())
    with rehearsal.vertex(buckets=["ours"]):
        made = set(common_tmp.parent.iterdir()) - before
        assert home in made and len(made) > 1
        for folder in made:
            assert as_neighbour(lambda folder=folder: os.listdir(folder)) == "PermissionError"  # type: ignore[misc]  # noqa: PTH208


def asked(address: str, *more: str, user: int) -> str:
    """What that user of this machine gets from a service: the answer whole, or nothing."""
    command = ["curl", "--silent", "--include", "--max-time", "20", *more, address]
    return subprocess.run(command, user=user, capture_output=True, text=True, check=False).stdout


CALL = ("--http2-prior-knowledge", "--header", "content-type: application/grpc",
        "--header", "te: trailers", "--data-binary", "@-")  # fmt: skip


def test_vertex_s_stand_ins_serve_their_user_alone(home: Path, root: None) -> None:
    with rehearsal.vertex(buckets=["ours"]) as endpoints:
        objects = f"{endpoints['storage']}/storage/v1/b/ours/o"
        layers = f"http://{endpoints['registry']}/v2/"
        for address in (objects, layers):
            assert "200" in asked(address, user=0).splitlines()[0]
            assert asked(address, user=NEIGHBOUR) == ""
        jobs = f"http://{endpoints['aiplatform']}/google.cloud.aiplatform.v1.JobService"
        empty = f"{jobs}/ListCustomJobs"
        assert called(empty, user=0) == "0"
        assert called(empty, user=NEIGHBOUR) == PERMISSION_DENIED


PERMISSION_DENIED = "7"


def called(address: str, user: int) -> str:
    """The status of a gRPC call with an empty message."""
    command = ["curl", "--silent", "--include", "--max-time", "20", *CALL, address]
    done = subprocess.run(command, user=user, input=bytes(5), capture_output=True, check=False)
    found = re.search(rb"grpc-status: (\d+)", done.stdout)
    return found[1].decode() if found else repr(done)


def test_sagemaker_s_stand_ins_serve_their_user_alone(home: Path, root: None) -> None:
    with rehearsal.sagemaker(buckets=["ours"]) as endpoints:
        for address in (f"{endpoints['s3']}/ours", endpoints["sagemaker"]):
            assert asked(address, user=0) != ""
            assert asked(address, user=NEIGHBOUR) == ""
