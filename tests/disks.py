"""File systems of a given size, to be filled, and folders that take nothing. Need root."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system in memory at `folder`, which is made; `size` as `mount` takes it."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing be written into a folder, except to files that are open."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(disk: Path) -> Path:
    """Take all room of a disk; the file whose removal gives it back."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(bytes(4096))
    return path
