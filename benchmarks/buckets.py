"""A bucket on this machine that is as far away as one in a cloud.

A store of objects that speaks S3 (`s3rver`, of npm), a proxy that adds 30 ms to each request and
gives a connection 100 MB/s, and a mount behind it (rclone's, read-only, no cache of files).
The proxy keeps no more under way on a connection than such a one holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LATENCY_S = 0.03
RATE = 100e6  # bytes a second, of a connection
NAME = "pictures"
KEY = SECRET = "S3RVER"
UNDER_WAY = int(LATENCY_S * RATE)
CHUNK = 256 << 10
PROGRAMS = Path(__file__).resolve().parents[1] / ".cache/benchmark-data/npm"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class FarBucket:
    """The bucket called NAME: where it is near, where it is far away, and where that is mounted."""

    near: str
    far: str
    mount: Path

    def fill(self, folder: Path, below: str = "") -> None:
        """Upload all files below a folder, past the proxy, to a prefix of names."""
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.near,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        files = [path for path in folder.rglob("*") if path.is_file()]
        with ThreadPoolExecutor(8) as pool:
            sent = [
                pool.submit(
                    client.upload_file, path, NAME, str(Path(below, path.relative_to(folder)))
                )
                for path in files
            ]
        for each in sent:
            each.result()


@contextlib.contextmanager
def far_bucket(folder: Path) -> Iterator[FarBucket]:
    """An empty bucket, with all that belongs to it below a folder."""
    store, proxy = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        program = _s3rver(PROGRAMS)
        command = [program, "--directory", folder / "objects", "--port", store, "--silent"]
        stack.enter_context(_running([*command, "--configure-bucket", NAME], store))
        stack.enter_context(_running([sys.executable, __file__, store, proxy], proxy))
        near, far = (f"http://127.0.0.1:{port}" for port in (store, proxy))
        yield FarBucket(near, far, folder / "mount")


@contextlib.contextmanager
def mounted(bucket: FarBucket) -> Iterator[Path]:
    """The bucket's files, as they are now."""
    bucket.mount.mkdir(exist_ok=True)
    keys = f"access_key_id={KEY},secret_access_key={SECRET}"
    remote = f":s3,provider=Other,{keys},endpoint='{bucket.far}',force_path_style=true:{NAME}"
    command: list[object] = ["rclone", "mount", remote, bucket.mount]
    command += ["--read-only", "--no-checksum"]
    command += ["--no-modtime", "--dir-cache-time", "1h", "--config", "/dev/null"]
    # It asks for an object's beginning at each open, wherever it is read then; gcsfuse doesn't.
    command += ["--vfs-read-chunk-size", "9M", "--vfs-read-chunk-size-limit", "9M"]
    with _running(command):
        until(lambda: os.path.ismount(bucket.mount))
        try:
            yield bucket.mount
        finally:
            subprocess.run(["fusermount3", "-uz", str(bucket.mount)], check=True)


@contextlib.contextmanager
def _running(command: list[object], port: int = 0) -> Iterator[None]:
    # rclone refuses to start where its own transport is to have other certificates.
    environment = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    words = [str(word) for word in command]
    process = subprocess.Popen(words, start_new_session=True, env=environment)
    try:
        until(lambda: not port or _answers(port))
        yield
    finally:
        process.terminate()
        process.wait()


def _s3rver(folder: Path) -> Path:
    program = folder / "node_modules/.bin/s3rver"
    if not program.exists():
        npm = shutil.which("npm") or sys.exit("this needs npm, rclone and fuse3")
        folder.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--silent", "--prefix", str(folder), "s3rver@3.7.1"]
        subprocess.run(install, check=True)
    return program


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def until(met: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():  # type: ignore[operator]
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


async def _requests(client: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
    """Each request arrives a while after it was sent; what it brings along doesn't wait again."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await client.readuntil(b"\r\n\r\n")
            await asyncio.sleep(LATENCY_S)
            store.write(head)
            found = _LENGTH.search(head)
            left = int(found[1]) if found else 0
            while left:
                part = await client.read(min(left, CHUNK))
                if not part:
                    break
                left -= len(part)
                store.write(part)
                await store.drain()
    store.close()


async def _answers_of(store: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    """No faster than the rate: a connection that was idle has saved nothing up."""
    free = 0.0
    with contextlib.suppress(ConnectionError):
        while part := await store.read(CHUNK):
            client.write(part)
            await client.drain()
            free = max(free, time.monotonic()) + len(part) / RATE
            wait = free - time.monotonic()
            if wait > 0.002:  # what a timer can do
                await asyncio.sleep(wait)
    client.close()


async def _serve(store: int, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near = _socket(socket.SO_RCVBUF, CHUNK)
        near.connect(("127.0.0.1", store))
        from_store, to_store = await asyncio.open_connection(sock=near, limit=CHUNK)
        await asyncio.gather(_requests(reader, to_store), _answers_of(from_store, writer))

    listener = _socket(socket.SO_SNDBUF, UNDER_WAY)
    listener.bind(("127.0.0.1", port))
    server = await asyncio.start_server(connected, sock=listener, limit=CHUNK)
    await server.serve_forever()


def _socket(buffer: int, size: int) -> socket.socket:
    """One with a buffer of that size, which Linux doubles for itself."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, buffer, size // 2)
    return found


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
