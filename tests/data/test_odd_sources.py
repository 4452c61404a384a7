"""What may stand among files that are packed: it is packed and read, or named in an error."""

from __future__ import annotations

import json
import os
import socket
import tarfile
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distrain_nb import api
from distrain_nb.data import pack, shards
from distrain_nb.errors import OptionError, PackingError
from distrain_nb.magics.lines import run_line
from distrain_nb.program.progress import report_to
from distrain_nb.worker.files.status import Progress


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.fsencode(name))
    return folder


def keys(folder: Path) -> list[str]:
    samples = shards(str(folder), 1, collate=lambda batch: batch[0], rank=0, world_size=1)
    return [sample["__key__"] for sample in samples]


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


ODD = {
    "a named pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": make_socket,
    "a link to nowhere: gone, No such file": lambda path: path.symlink_to("gone"),
    "a link to nowhere: odd.jpg, Too many levels": lambda path: path.symlink_to("odd.jpg"),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = files(tmp_path / "in", "a.jpg")
    monkeypatch.chdir(source)  # the path of a socket is short
    ODD[kind](Path("odd.jpg"))
    with pytest.raises(PackingError, match=rf"/in/odd.jpg is {kind}"):
        pack(str(source), str(tmp_path / "out"))
    listed = tmp_path / "list.txt"
    listed.write_text("in/a.jpg\nin/odd.jpg\n")
    with pytest.raises(PackingError, match=rf"list.txt, line 2: .*/in/odd.jpg is {kind}"):
        pack(str(listed), str(tmp_path / "out"))
    with pytest.raises(PackingError, match=rf"odd.jpg is {kind}"):
        pack("odd.jpg", str(tmp_path / "out"))


@pytest.mark.parametrize("content", [b"x" * 5_000_000, None])
def test_a_file_that_becomes_endless_ends_it(content: bytes | None, tmp_path: Path) -> None:
    """A pipe has no end before it has begun; what grows has none."""
    source = files(tmp_path / "in", "a.txt", "b.txt")

    def change(progress: Progress) -> None:
        if progress.phase.startswith("packing") and (path := source / "b.txt").is_file():
            path.unlink()
            if content is None:
                os.mkfifo(path)
            else:
                path.symlink_to("/dev/zero")

    with (
        report_to(change),
        pytest.raises(PackingError, match=r"b.txt has .* bytes, and had 5 when"),
    ):
        pack(str(source), str(tmp_path / "out"))


def test_a_picture_beside_folders_is_warned_of(tmp_path: Path) -> None:
    source = files(tmp_path / "in", "a/1.jpg", "z.jpg")
    with pytest.warns(UserWarning, match="the folders aren't classes: z.jpg is an image in none"):
        pack(str(source), str(tmp_path / "out"))


NAMES = ("new\nline/1.jpg", "1\n2.jpg", "tab\t/\x01.jpg", "back\\slash/1.jpg", "a b/ü.jpg")


@pytest.mark.parametrize("name", [*NAMES, os.fsdecode(b"\xff/\xfe.jpg")])
def test_any_name_is_read_as_it_was_packed(name: str, tmp_path: Path) -> None:
    import webdataset

    source = files(tmp_path / "in", name, "z.jpg")
    assert pack(str(source), str(tmp_path / "out")).samples == 2
    assert len(keys(tmp_path / "out")) == 2
    shard = str(tmp_path / "out/shard-000000.tar")
    with tarfile.open(shard) as tar:
        assert not any("\n" in each or "\\" in each for each in tar.getnames())
    read = webdataset.WebDataset(shard, shardshuffle=False)
    assert [sample["__key__"] for sample in read] == keys(tmp_path / "out")


@pytest.mark.parametrize(
    "names",
    [
        ("2024.05.png", "2024_05.txt"),
        ("a\\b/1.jpg", "a_b/1.txt"),
        ("a\nb.jpg", "a_b.txt"),
        ("x.1/1.2.wav", "x.1/1_2.json"),
    ],
)
def test_names_that_would_be_one_sample_are_named(names: tuple[str, str], tmp_path: Path) -> None:
    source = files(tmp_path / "in", *names, "z.jpg")
    with pytest.raises(PackingError) as caught:
        pack(str(source), str(tmp_path / "out"))
    assert "would both be of the sample" in str(caught.value)
    assert all(repr(name)[1:-1] in str(caught.value) for name in names)


def test_lists_are_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    source = files(tmp_path, "ü.jpg", "b\u2028c.jpg")
    listed = tmp_path / "list.txt"
    listed.write_bytes("\ufeffü.jpg\tcat\r\nb\u2028c.jpg\tdog\r\n".encode())
    assert pack(str(listed), str(tmp_path / "out")).classes == ("cat", "dog")
    for content, message in (
        ("b\u2028c.jpg\nü.jpg".encode("utf-8") + "\nü".encode("latin-1"), "line 3 is not UTF-8"),
        ("ü.jpg".encode("utf-16"), "line 1 is not UTF-8"),
        (b"a\0b.jpg", "line 1: a\0b.jpg is not there"),
        (b"gone.jpg", "line 1: gone.jpg is not there"),
        (b"out", "line 1: .*/out is a folder"),
    ):
        listed.write_bytes(content)
        with pytest.raises(PackingError, match=message):
            pack(str(listed), str(tmp_path / "other"))
    listed.write_text("\n")
    with pytest.raises(OptionError, match="lists no files"):
        pack(str(listed), str(tmp_path / "other"))
    assert source


def test_sizes_are_numbers_of_bytes(tmp_path: Path) -> None:
    shell = InteractiveShell.instance()
    source = files(tmp_path / "in", "a.jpg")
    for size in (float("nan"), float("inf"), 0, -1, "1MB", None, True):
        with pytest.raises(OptionError, match=r"invalid size .* expected a number of bytes"):
            pack(str(source), str(tmp_path / "out"), size)  # type: ignore[arg-type]
    for size in (float("nan"), float("inf"), 0):
        with pytest.raises(OptionError, match=r"invalid size .* expected a number of bytes"):
            api.packing("gs://b/in", "gs://b/out", size, None, {"on": "vertex"})
    for where in ([], ["--on", "vertex"]):
        with pytest.raises(OptionError, match=r"invalid --size .* expected 1MB or more"):
            run_line(["shard", "gs://b/in", "gs://b/out", "--size", "9" * 400, *where], shell)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 1}', "[" * 9999, "\xff"])
def test_a_damaged_index_of_the_target_is_named(content: str, tmp_path: Path) -> None:
    source = files(tmp_path / "in", "a.jpg")
    pack(str(source), str(tmp_path / "out"))
    (tmp_path / "out/index.json").write_text(content, encoding="latin-1")
    with pytest.raises(OptionError, match=r"out/index.json is"):
        pack(str(source), str(tmp_path / "out"))
    with pytest.raises(ValueError, match=r"out/index.json is"):
        shards(str(tmp_path / "out"), 1)


def test_a_damaged_record_is_of_a_shard_to_be_packed(tmp_path: Path) -> None:
    source = files(tmp_path / "in", "a.jpg")
    pack(str(source), str(tmp_path / "out"))
    index = json.loads((tmp_path / "out/index.json").read_text())
    (tmp_path / "out/index.json").unlink()
    plan = {"fingerprint": index["fingerprint"]}
    files(tmp_path / "out/.packing", "shard-000000.tar.json")
    (tmp_path / "out/.packing/plan.json").write_text(json.dumps(plan))
    assert pack(str(source), str(tmp_path / "out")).kept == 0
    assert json.loads((tmp_path / "out/index.json").read_text()) == index


@pytest.mark.parametrize("name", ["dataset_info.json", "dataset_dict.json", "state.json"])
@pytest.mark.parametrize("content", ["", "[]", "{}", '{"features": 1, "splits": 2}'])
def test_a_damaged_saved_dataset_is_named(name: str, content: str, tmp_path: Path) -> None:
    source = files(tmp_path / "in", "a.arrow")
    for each in {"dataset_info.json", "state.json", name}:
        (source / each).write_text('{"features": {}, "_data_files": []}')
    (source / name).write_text(content)
    with pytest.raises((PackingError, OptionError), match=str(source)):
        pack(str(source), str(tmp_path / "out"))


def test_what_the_system_says_names_the_path(tmp_path: Path) -> None:
    source = files(tmp_path / "in", "a.jpg")
    for target in ("in/a.jpg", "in/a.jpg/out", "x" * 300):
        with pytest.raises(
            PackingError, match=f"{target}.*: (Not a dir|File name too|File exists)"
        ):
            pack(str(source), str(tmp_path / target))
    with pytest.raises(PackingError, match="xxx: File name too long"):
        pack(str(tmp_path / ("x" * 300)), str(tmp_path / "out"))
    with pytest.raises(OptionError, match="~nobody-of-that-name: nothing is there"):
        pack("~nobody-of-that-name", str(tmp_path / "out"))
