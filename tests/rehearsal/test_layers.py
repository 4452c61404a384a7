"""Layers that reach outside of their image, or that can't be unpacked: nothing else is touched."""

from __future__ import annotations

import random
import stat
import tarfile
import time
import zlib
from typing import TYPE_CHECKING

import pytest

from distrain_nb.errors import ImageError
from distrain_nb.image.layer_entries import BadEntry
from distrain_nb.rehearsal.engine.image_root import host_path, image_path, make_file, make_folder
from distrain_nb.rehearsal.engine.unpacked import (
    MOUNT_POINTS,
    MOUNTED_FILES,
    apply_layer,
    gunzipped,
)
from tests.fuzzing import rounds

from .archives import TYPES, Written, archive

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.brief

REFUSED = (BadEntry, OSError, EOFError, ValueError, OverflowError, tarfile.TarError, zlib.error)
ROUNDS = 300


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The image's root, with a neighbour that is none of its business."""
    (tmp_path / "neighbour").mkdir()
    (tmp_path / "neighbour" / "file").write_text("untouched")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def unpacked(root: Path, *layers: list[Written]) -> None:
    for entries in layers:
        apply_layer(iter([archive(*entries)]), root)


def prepared(root: Path) -> None:
    for name in MOUNT_POINTS:
        make_folder(root, name)
    for name in MOUNTED_FILES:
        make_file(root, name)


def outside(root: Path) -> dict[str, str]:
    """What is beside the root, with modes and contents."""
    return {
        str(path.relative_to(root.parent)): f"{path.lstat().st_mode} {path.lstat().st_mtime_ns} "
        + (path.read_text() if path.is_file() else "")
        for path in sorted(root.parent.rglob("*"))
        if root not in (path, *path.parents)
    }


OUTSIDE = [
    [Written("f", "own"), Written("f", ".wh...")],
    [Written("f", "a/.wh..")],
    [Written("f", "a/.wh.")],
    [Written("d", "a"), Written("f", "a/.wh...")],
    [Written("s", "a", "../neighbour"), Written("f", "a/.wh.file")],
    [Written("s", "a", "../neighbour"), Written("f", "a/.wh..wh..opq")],
    [Written("s", "a", "../neighbour"), Written("f", "a/new", "x")],
    [Written("s", "a", "../neighbour"), Written("d", "a/folder")],
    [Written("s", "a", "../neighbour/file"), Written("f", "a", "x")],
    [Written("s", "a", "../neighbour/file"), Written("l", "b", "a"), Written("f", "b", "x")],
    [Written("l", "b", "../neighbour/file"), Written("f", "b", "x")],
    [Written("l", "b", "/neighbour/file")],
    [Written("f", "../neighbour/file", "x")],
    [Written("d", "..", about={"mode": 0o000})],
    [Written("d", "a/../../neighbour", about={"mode": 0o000})],
]


@pytest.mark.parametrize("entries", OUTSIDE, ids=lambda es: " ".join(e.name for e in es))
def test_nothing_outside_is_touched(root: Path, entries: list[Written]) -> None:
    before = outside(root)
    absolute = [
        Written(e.kind, e.name, e.content.replace("../", f"{root.parent}/"), e.about)
        for e in entries
    ]
    for chosen in (entries, absolute):
        try:
            unpacked(root, chosen)
            prepared(root)
        except REFUSED:
            assert root.is_dir()
    assert outside(root) == before


@pytest.mark.parametrize("name", [".wh...", "a/.wh..", "a/.wh."])
def test_a_whiteout_names_a_file(root: Path, name: str) -> None:
    with pytest.raises(ImageError, match="names no file"):
        unpacked(root, [Written("f", name)])


@pytest.mark.parametrize(
    ("name", "target"),
    [("etc/hosts", "{}/hosts"), ("etc", "{}/etc"), ("etc/resolv.conf", "../../{}/x"),
     ("opt", "{}/opt"), ("opt/ml", "../../neighbour/ml"), ("var", "../neighbour/var")],
)  # fmt: skip
def test_mount_points_are_made_inside_wherever_links_lead(
    root: Path, name: str, target: str
) -> None:
    before = outside(root)
    unpacked(root, [Written("s", name, target.format(root.parent / "neighbour"))])
    prepared(root)
    assert outside(root) == before
    for each in (*MOUNT_POINTS, *MOUNTED_FILES):
        mounted = root / image_path(root, each).lstrip("/")
        assert mounted.exists()
        assert mounted.resolve() == mounted


def test_links_that_lead_nowhere_do_no_harm(root: Path) -> None:
    unpacked(
        root,
        [
            Written("s", "etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf"),
            Written("s", "etc/hosts", "/run/hosts"),
            Written("s", "usr/lib/gone", "/nowhere/at/all"),
            Written("f", "usr/lib/gone/file", "through it"),
            Written("f", "never/was/.wh..wh..opq"),
            Written("f", "never/was/.wh.there"),
            Written("f", ".wh..wh.plnk", "a note of AUFS"),
        ],
    )
    prepared(root)
    assert (root / "run/systemd/resolve/stub-resolv.conf").is_file()
    assert image_path(root, "/etc/resolv.conf") == "/run/systemd/resolve/stub-resolv.conf"
    assert host_path(root, "/usr/lib/gone/file").read_text() == "through it"
    assert not (root / ".wh..wh.plnk").exists()


def test_devices_are_left_out_and_nobody_elses_rights_are_lent(root: Path) -> None:
    entries = [Written(kind, kind) for kind in "cbp"]
    unpacked(root, [*entries, Written("f", "sudo", "#!", {"mode": 0o6755}),
                    Written("d", "shared", about={"mode": 0o3777})])  # fmt: skip
    assert {path.name for path in root.iterdir()} == {"sudo", "shared"}
    assert stat.S_IMODE((root / "sudo").stat().st_mode) == 0o755
    assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o777


@pytest.mark.parametrize("when", ["1e300", "-5", "nan", "inf", "99999999999"])
def test_times_that_no_file_can_have_are_left_out(root: Path, when: str) -> None:
    unpacked(root, [Written("f", "a", "x", {"pax": {"mtime": when}})])
    assert abs((root / "a").stat().st_mtime - time.time()) < 86_400


@pytest.mark.parametrize(
    ("entry", "error", "why"),
    [
        (Written("f", "a", about={"pax": {"path": "a\0b"}}), BadEntry, "NUL"),
        (Written("f", "/".join(["d"] * 300)), BadEntry, "200 folders deep"),
        (Written("f", "n" * 300), OSError, "too long"),
        (Written("s", "a", "t" * 5000), OSError, "too long"),
    ],
)
def test_names_that_can_not_be_are_refused_with_a_sentence(
    root: Path, entry: Written, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why) as refused:
        unpacked(root, [entry])
    said = refused.value.strerror if isinstance(refused.value, OSError) else str(refused.value)
    assert said and len(said) < 1000


def test_links_can_not_be_stacked_into_folders_that_python_can_not_remove(root: Path) -> None:
    deep = "/".join(["d"] * 100)
    links = [Written("s", f"l{n + 1}", f"l{n}/{deep}") for n in range(12)]
    with pytest.raises(BadEntry, match="folders deep"):
        unpacked(root, [Written("d", "l0"), *links, Written("f", "l12/file", "x")])


def test_a_header_can_not_ask_for_all_memory(root: Path) -> None:
    data = bytearray(archive(Written("f", "a", about={"pax": {"path": "long" * 50}})))
    entry = tarfile.TarInfo.frombuf(data[:512], "utf-8", "strict")
    entry.size = 1 << 40
    data[:512] = entry.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(BadEntry, match="header of the archive says"):
        apply_layer(iter([bytes(data)]), root)


def test_a_file_of_holes_is_no_way_to_fill_the_disk(root: Path) -> None:
    about = {"pax": {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "big",
                     "GNU.sparse.size": str(1 << 50), "GNU.sparse.map": "0,1"}}  # fmt: skip
    with pytest.raises(BadEntry, match="sparse"):
        unpacked(root, [Written("f", "big", "x", about)])


SEEDS = [
    *(archive(*entries) for entries in OUTSIDE),
    archive(Written("f", "a/b", "text"), Written("s", "c", "a"), Written("l", "d", "c/b"),
            Written("f", "a/.wh.b"), Written("d", "e"), Written("f", "a/.wh..wh..opq")),
    archive(Written("f", "x" * 200, "long", {"pax": {"mtime": "1.5", "comment": "é"}})),
    # what a fuzzer has found: a size of which tarfile can't make a number
    archive(Written("f", "a", "x", {"pax": {"size": "-1"}})),
    archive(Written("f", "a", "x", {"pax": {"GNU.sparse.map": "a,b"}})),
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    """Some layer with a few bytes changed, a piece moved or another kind of entry."""
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.choice((1, 2, 8))):
        block = 512 * chance.randrange(max(1, len(data) // 512))
        header = data[block : block + 512]
        if chance.random() < 0.5 and len(header) == 512:
            at = chance.choice((0, 100, 124, 136, 156, 157, 257, 345)) + chance.randrange(12)
            header[at % 512] = chance.choice(
                b"\0\x80\xff/.07xgLKS12345" + bytes([chance.randrange(256)])
            )
            total = sum(header[:148]) + sum(header[156:]) + 8 * 32
            header[148:156] = b"%06o\0 " % total  # as if it had been written so
            data[block : block + 512] = header
        elif chance.random() < 0.3:
            data[block:block] = chance.choice(SEEDS)[:1024]
        else:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def entries_by_chance(chance: random.Random) -> bytes:
    names = ["a", "a/b", "etc", "etc/hosts", "../neighbour", "a/../..", "/", ".", "é", "a/.wh.b",
             ".wh...", "etc/.wh..wh..opq", ".wh.a", "d/" * 30 + "x"]  # fmt: skip
    leads = ["..", "/", "../neighbour/file", "a", "a/b", "etc", ".", "../../../../etc", "/a/b"]
    return archive(
        *(
            Written(kind, chance.choice(names), "x" if kind == "f" else chance.choice(leads))
            for kind in chance.choices(list(TYPES), k=chance.randrange(1, 12))
        )
    )


def test_no_layer_reaches_outside_or_fails_otherwise_than_it_may(root: Path) -> None:
    before = outside(root)
    for number, chance in enumerate(rounds(12, ROUNDS)):
        made = (mutated if number % 2 else entries_by_chance)(chance)
        try:
            apply_layer(iter([made]), root)
            prepared(root)
        except REFUSED:
            pass
        assert outside(root) == before, made
        assert root.is_dir()
    assert not any(path.lstat().st_mode & 0o7000 for path in root.rglob("*"))


def test_broken_gzip_is_told(root: Path) -> None:
    packed = zlib.compressobj(wbits=31)
    data = packed.compress(archive(Written("f", "a", "x" * 5000))) + packed.flush()
    chance = random.Random(3)
    for _ in range(100):
        broken = bytearray(data[: chance.randrange(1, len(data))])
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        with pytest.raises(REFUSED):
            apply_layer(gunzipped(iter([bytes(broken)])), root)
