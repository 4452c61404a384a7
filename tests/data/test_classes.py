"""Folders that are classes, as torchvision's ImageFolder has them, whatever else is in them."""

from __future__ import annotations

import random
import tarfile
import warnings
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distrain_nb.data import pack, shards
from distrain_nb.errors import PackingError
from distrain_nb.magics.lines import run_line
from distrain_nb.worker.packing.classes import IMAGES, sample_names
from tests.data.test_odd_sources import files
from tests.fuzzing import rounds

CLASSES = [f"{folder}/{number}.jpg" for folder in ("cat", "dog") for number in range(3)]


def packed(folder: Path, *names: str) -> tuple[dict[str, str], str]:
    """What is in shards of files of these names, and what is said of it."""
    source = files(folder / "in", *names)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pack(str(source), str(folder / "out"))
    with tarfile.open(folder / "out/shard-000000.tar") as tar:
        found = {each.name: tar.extractfile(each).read().decode() for each in tar}  # type: ignore[union-attr]
    return found, "\n".join(str(each.message) for each in said)


PLAIN = {
    **{name: name for name in CLASSES},
    **{name.replace("jpg", "cls"): str(int(name > "d")) for name in CLASSES},
}


@pytest.mark.parametrize(
    ("more", "members", "note"),
    [
        ((), {}, ""),
        (("cat/photo.edited.jpg",), {"cat/photo_edited": "jpg"}, ""),
        (("dog/Thumbs.db", "README.md"), {}, "2 files were passed over (README.md, dog/Thumbs.db)"),
        (("cat/notes",), {}, "1 file was passed over (cat/notes)"),
        (("logo.png",), {}, "1 file was passed over (logo.png)"),
        (
            ("cat/john.doe.jpg", "cat/john.smith.JPG"),
            {"cat/john_doe": "jpg", "cat/john_smith": "jpg"},
            "cat/john.doe.jpg and cat/john.smith.JPG are two samples",
        ),
        (
            ("cat/0.edited.jpg",),
            {"cat/0_edited": "jpg"},
            "cat/0.edited.jpg and cat/0.jpg are two samples",
        ),
        (("cat/sub/4.jpg",), {"cat/sub/4": "jpg"}, "cat/sub/4.jpg is of cat"),
    ],
)
def test_one_file_more_loses_no_label(
    more: tuple[str, ...], members: dict[str, str], note: str, tmp_path: Path
) -> None:
    found, said = packed(tmp_path, *CLASSES, *more)
    assert {f"{key}.{end}" for key, end in members.items()} == {
        name for name in found.keys() - PLAIN.keys() if not name.endswith(".cls")
    }
    assert all(found[f"{key}.cls"] == "0" for key in members)
    assert {name: found[name] for name in PLAIN} == PLAIN
    assert note in said and bool(note) == bool(said)


def test_what_is_beside_an_image_stays(tmp_path: Path) -> None:
    more = ("cat/1.json", "cat/1.meta.json", "dog/2.TXT", "dog/3.txt")
    found, said = packed(tmp_path, *CLASSES, *more)
    assert found == {
        **PLAIN,
        "cat/1.json": "cat/1.json",
        "cat/1.meta.json": "cat/1.meta.json",
        "dog/2.txt": "dog/2.TXT",
    }
    assert "1 file was passed over (dog/3.txt)" in said


def test_images_that_all_samples_have_are_members(tmp_path: Path) -> None:
    masks = [name.replace("jpg", "seg.png") for name in CLASSES]
    found, said = packed(tmp_path, *CLASSES, *masks)
    assert found == {**PLAIN, **{name: name for name in masks}}
    assert not said
    found, said = packed(tmp_path / "less", *CLASSES, *masks[1:])
    assert found["cat/1_seg.cls"] == "0"
    assert "cat/1.jpg and cat/1.seg.png are two samples" in said


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("images/1.jpg", "images/2.jpg", "labels/1.txt"), "labels has no image of its own"),
        (("train/cat/1.jpg", "test/cat/1.jpg"), "test has no image of its own"),
        (("a.jpg", "b.jpg", "thumbs/a.jpg"), "a.jpg is an image in none"),
        (("cat/1.jpg", "cat/1.cls", "dog/1.jpg"), "cat/1.cls says one"),
    ],
)
def test_folders_that_are_no_classes_are_packed_whole(
    names: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    found, said = packed(tmp_path, *names)
    assert found == {name: name for name in names}
    assert said == f"the folders aren't classes: {why}"


def test_classes_of_a_list_are_of_samples(tmp_path: Path) -> None:
    files(tmp_path, "john.doe.jpg", "john.smith.jpg", "a.wav", "a.json", "b.wav")
    listed = tmp_path / "list.tsv"
    listed.write_text("john.doe.jpg\tcat\njohn.smith.jpg\tdog\na.wav\tcat\na.json\nb.wav\n")
    with pytest.warns(UserWarning, match="1 sample has no class, such as b"):
        pack(str(listed), str(tmp_path / "out"))
    samples = shards(str(tmp_path / "out"), 1, collate=lambda batch: batch[0])
    classes = [(each["__key__"], each.get("cls")) for each in samples]
    assert classes == [("john_doe", b"0"), ("john_smith", b"1"), ("a", b"0"), ("b", None)]
    listed.write_text("a.wav\tcat\na.json\tdog\n")
    with pytest.raises(PackingError, match=r"a.json has the class dog, but another .* has cat"):
        pack(str(listed), str(tmp_path / "other"))


def test_metadata_of_what_is_passed_over_are_named(tmp_path: Path) -> None:
    source = files(tmp_path / "in", *CLASSES, "cat/notes.md")
    (source / "metadata.csv").write_text("file_name,a\ncat/notes.md,1\n")
    with pytest.raises(PackingError, match=r"metadata of cat/notes.md, which isn't an image"):
        pack(str(source), str(tmp_path / "out"))


def test_the_verb_says_what_is_passed_over_each_time(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = files(tmp_path / "in", *CLASSES, "READ\x1bME.md")
    for _ in range(2):
        run_line(["shard", str(source), str(tmp_path / "out")], InteractiveShell.instance())
        first, second = capsys.readouterr().out.splitlines()
        assert first.startswith("6 samples in 1 shard") and home
        assert second.startswith(r"1 file was passed over ('READ\x1bME.md'): the folders are")


ENDS = ("jpg", "JPEG", "png", "seg.png", "txt", "json", "meta.json", "db", "tar.gz", "")


def drawn(chance: random.Random) -> list[str]:
    names = {f"{folder}/{folder}.png" for folder in ("a", "b.c", "d")}
    for _ in range(chance.randrange(12)):
        folder = chance.choice(("", "a/", "b.c/", "d/", "d/e/"))
        stem = chance.choice(("1", "2", "john.doe", "john.smith", "2024.05"))
        names.add(f"{folder}{stem}.{chance.choice(ENDS)}".rstrip("."))
    return sorted(names)


def is_image(name: str) -> bool:
    """What torchvision's `has_file_allowed_extension` says."""
    return name.lower().endswith(tuple(f".{end}" for end in IMAGES))


def test_classes_are_those_of_torchvision() -> None:
    """`make_dataset`: of each file below a folder that ends as an image does, the first folder."""
    for chance in rounds(15, 1000):
        names = drawn(chance)
        images = {name for name in names if is_image(name) and "/" in name}
        read = sample_names(names)
        if len(images) <= len([name for name in names if is_image(name)]) / 2:
            assert not read.labels and list(read.parts) == names and read.notes
            continue
        theirs = {name: name.partition("/")[0] for name in images}
        assert {name: read.labels[read.parts[name][0]] for name in images} == theirs
        assert {stem for stem, _ in read.parts.values()} == read.labels.keys()
        left = set(names) - read.parts.keys()
        assert bool(left) == ("passed over" in "".join(read.notes))
