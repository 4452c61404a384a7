"""What a rehearsed job can read, write and keep on its host: a program that tries.

It tries as root and as another user under bubblewrap, in a network of the job's own too, where
bubblewrap runs as the root of a user namespace, and under Docker.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.config import private_home
from distrain_nb.rehearsal.engine import docker, sandbox
from distrain_nb.rehearsal.engine.replica import Engine, ReplicaSpec
from distrain_nb.rehearsal.registry import registry
from tests.image.services.bases import BaseImage, Blob
from tests.neighbour import as_neighbour

if TYPE_CHECKING:
    from collections.abc import Mapping

PLANTED, WITHOUT_ROOT = "/usr/lib/planted", ("CapEff", "CapPrm", "CapInh", "CapAmb")
TRIES = r"""
import ctypes, json, os, signal, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
secret, bucket = os.environ["SECRET"], "/gcs/b"
RDONLY_REMOUNT, BIND, REC, NEW_USER, NEW_MOUNTS = 1 | 32 | 4096, 4096, 16384, 0x10000000, 0x20000
results = {}

def attempt(name, deed):
    try:
        results[name] = str(deed())
    except OSError as error:
        results[name] = type(error).__name__ + " " + str(error.strerror)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]

def by_handle(folder, inode):
    handle = Handle(8, 1)
    ctypes.memmove(handle.data, struct.pack("<II", inode, 0), 8)
    at = os.open(folder, os.O_RDONLY)
    root = call(libc.open_by_handle_at, at, ctypes.byref(handle), os.O_RDONLY | os.O_DIRECTORY)
    return os.read(os.open(secret.lstrip("/"), os.O_RDONLY, dir_fd=root), 100)

def by_own_handle(folder):
    handle, mount = Handle(128, 0), ctypes.c_int()
    name = folder.encode()
    call(libc.name_to_handle_at, -100, name, ctypes.byref(handle), ctypes.byref(mount), 0)
    at = os.open(folder, os.O_RDONLY)
    opened = call(libc.open_by_handle_at, at, ctypes.byref(handle), os.O_RDONLY | os.O_DIRECTORY)
    return "opened " + str(os.listdir(opened))

def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"

def set_of_machine(name):
    # What is there is written again, so that a sandbox that lets it through does no harm.
    with open(name) as file:
        text = file.read()
    with open(name, "w") as file:
        file.write(text)
    return "written"

def proc_of_own():
    call(libc.mount, b"proc", b"/tmp", b"proc", 0, None)
    return set_of_machine("/tmp/sys/kernel/core_pattern")

def remounted(target="/", source=None, flags=32 | 4096):
    call(libc.mount, source and source.encode(), target.encode(), None, ctypes.c_ulong(flags), None)
    return write(PLANTED)

def in_own_namespace(deed):
    reading, writing = os.pipe()
    if not os.fork():
        try:
            call(libc.unshare, NEW_USER | NEW_MOUNTS)
            answer = str(deed())
        except OSError as error:
            answer = "OSError " + str(error.strerror)
        os.write(writing, answer.encode())
        os._exit(0)
    os.wait()
    return os.read(reading, 1000).decode()

def device():
    path = "/tmp/device"
    os.mknod(path, 0o60600, os.makedev(*map(int, os.environ["DISK"].split(":"))))
    with open(path, "rb") as file:
        return file.read(1) and "a disk of the host was read"

def linked(kind):
    path = bucket + "/" + kind.__name__
    kind(secret, path)
    with open(path) as file:
        return file.read()

PLANTED = "/usr/lib/planted"
results["there"] = str(os.path.exists(PLANTED))
with open("/proc/self/status") as file:
    results.update(line.split() for line in file.read().splitlines() if line.startswith("Cap"))
results = {name.rstrip(":"): value for name, value in results.items()}
attempt("read", lambda: open(secret).read())
attempt("handle of the bucket", lambda: by_handle(bucket, 2))
attempt("handle of the image", lambda: by_handle("/", 2))
attempt("handle of a file", lambda: by_handle("/etc", 2))
attempt("its own handle", lambda: by_own_handle("/"))
attempt("bind", lambda: remounted("/usr/lib", bucket, BIND))
attempt("unmount", lambda: call(libc.umount2, b"/etc/hosts", 2))
attempt("image", lambda: write(PLANTED))
attempt("remount", remounted)
attempt("remount in a namespace", lambda: in_own_namespace(remounted))
attempt("handle in a namespace", lambda: in_own_namespace(lambda: by_handle(bucket, 2)))
attempt("core pattern", lambda: set_of_machine("/proc/sys/kernel/core_pattern"))
attempt("core pattern in a namespace", lambda: in_own_namespace(proc_of_own))
attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w").close())
attempt("device", device)
attempt("symlink", lambda: linked(os.symlink))
attempt("hard link", lambda: os.link("/usr/bin/env", bucket + "/env"))
attempt("root of the first process", lambda: os.listdir("/proc/1/root" + os.path.dirname(secret)))
attempt("processes", lambda: [name for name in os.listdir("/proc") if name.isdigit()])
attempt("bucket", lambda: write(bucket + "/kept"))
print(json.dumps(results), flush=True)
"""


@dataclass(frozen=True)
class Host:
    """The host's side: a bucket's folder, a secret beside it, and the images that are kept."""

    folder: Path

    @property
    def bucket(self) -> Path:
        return self.folder / "bucket"

    @property
    def secret(self) -> Path:
        return self.folder / "beside" / "secret"

    def prepare(self) -> None:
        self.bucket.mkdir()
        self.secret.parent.mkdir()
        self.secret.write_text("of the host")


@pytest.fixture
def host() -> Iterator[Host]:
    """A folder that any user may enter, with everything that a job could reach from there."""
    folder = Path(tempfile.mkdtemp(prefix="di-", dir="/tmp"))
    folder.chmod(0o777)
    yield Host(folder)
    shutil.rmtree(folder, ignore_errors=True)


def tried(engine: Engine, image: str, host: Host, *, apart: bool = False) -> dict[str, str]:
    """What the job says of its attempts."""
    disk = os.stat(host.folder).st_dev  # noqa: PTH116
    spec = ReplicaSpec(
        "algo-1", image, ("python3", "-c", TRIES),
        environment={"SECRET": str(host.secret), "DISK": f"{os.major(disk)}:{os.minor(disk)}"},
        mounts={"/gcs/b": host.bucket},
    )  # fmt: skip
    network = engine.network(f"isolated-{os.getpid()}", ["algo-1"], apart=apart)
    try:
        running = network.start(spec)
        lines = [text for _, text in running.lines()]
    finally:
        network.close()
    try:
        results: dict[str, str] = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise AssertionError(f"the job came to nothing: {lines}") from None
    return results


def image_files() -> Mapping[str, tuple[Any, ...]]:
    """Every file of the unpacked images, by its contents, mode and owner."""
    entries = {}
    for path in sorted((private_home() / "rehearsal" / "roots").rglob("*")):
        stat = path.lstat()
        is_file = path.is_file() and not path.is_symlink()
        data = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
        entries[str(path)] = (stat.st_mode, stat.st_uid, stat.st_mtime_ns, data)
    return entries


def assert_nothing_got_out(results: Mapping[str, str], host: Host) -> None:
    assert host.secret.read_text() == "of the host"
    assert os.listdir(host.secret.parent) == ["secret"]  # noqa: PTH208
    assert not any("of the host" in answer for answer in results.values()), results
    refused = [
        "read", "handle of the bucket", "handle of the image", "handle of a file", "bind",
        "unmount", "remount", "remount in a namespace", "handle in a namespace", "core pattern",
        "core pattern in a namespace", "sysrq", "device", "symlink", "hard link",
    ]  # fmt: skip
    assert [name for name in refused if "Error" not in results[name]] == [], results
    assert results["bucket"] == "written" and (host.bucket / "kept").read_text() == "x"


def under_bubblewrap(base: BaseImage, host: Host, *, apart: bool) -> None:
    """Run the job twice; its image is for the second what it was for the first."""
    engine = sandbox.find()
    assert engine
    with registry(private_home() / "registry") as address:
        image = f"{address}/isolated/python:1"
        base.push(image)
        engine.pull(image)
        before = image_files()
        assert len(before) > 100
        for _ in range(2):
            results = tried(engine, image, host, apart=apart)
            assert {results[name] for name in WITHOUT_ROOT} == {"0" * 16}, results
            assert results["its own handle"] == "PermissionError Operation not permitted"
            assert "Read-only file system" in results["image"] and results["there"] == "False"
            assert_nothing_got_out(results, host)
            assert image_files() == before
            (host.bucket / "kept").unlink()
            (host.bucket / "symlink").unlink()


@pytest.mark.parametrize("apart", [False, True], ids=["of this machine", "of its own"])
def test_as_root(
    small: BaseImage, host: Host, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    assert os.geteuid() == 0, "the test of root has to be started by root"
    monkeypatch.setenv("DISTRAIN_HOME", str(host.folder / "home"))
    host.prepare()
    under_bubblewrap(small, host, apart=apart)


@pytest.mark.parametrize("apart", [False, True], ids=["of this machine", "of its own"])
def test_as_another_user(
    small: BaseImage, host: Host, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    """The neighbour may read neither this Python nor the layers in our cache."""
    layers = tuple(_readable(layer, host.folder) for layer in small.layers)
    monkeypatch.setenv("DISTRAIN_HOME", str(host.folder / "home"))
    monkeypatch.setenv("HOME", str(host.folder))
    monkeypatch.setenv("TMPDIR", str(host.folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")

    def deed() -> None:
        os.chdir(host.folder)
        host.prepare()
        under_bubblewrap(BaseImage(layers), host, apart=apart)

    assert as_neighbour(told(deed, host)) == "", (host.folder / "failed").read_text()


def _readable(layer: Blob, folder: Path) -> Blob:
    copy = folder / layer.path.name
    shutil.copy(layer.path, copy)
    copy.chmod(0o644)
    return Blob(copy, layer.digest, layer.diff_id)


def told(deed: Callable[[], None], host: Host) -> Callable[[], None]:
    """The same, with what went wrong in a file: another process fails."""

    def telling() -> None:
        try:
            deed()
        except BaseException as error:
            (host.folder / "failed").write_text(f"{type(error).__name__}: {error}")
            raise

    return telling


def test_under_docker(
    docker_host: None, small: BaseImage, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's own layer may be written; the next container doesn't have it."""
    monkeypatch.setenv("DISTRAIN_HOME", str(host.folder / "home"))
    host.prepare()
    engine = docker.find()
    assert engine
    with registry(private_home() / "registry") as address:
        image = f"{address}/isolated/python:1"
        small.push(image)
        engine.pull(image)
        for _ in range(2):
            results = tried(engine, image, host)
            assert results["image"] == "written" and results["there"] == "False"
            assert_nothing_got_out(results, host)
            (host.bucket / "kept").unlink()
            (host.bucket / "symlink").unlink()
