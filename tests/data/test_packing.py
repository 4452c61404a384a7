"""Files become shards: which, with which classes, and the same whoever is killed meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import tarfile
from functools import partial
from pathlib import Path

import pytest

from distrain_nb.data import pack, shards
from distrain_nb.data.packing import Packed
from distrain_nb.errors import OptionError, PackingError
from distrain_nb.magics.lines import run_line
from distrain_nb.magics.verbs import packing_options
from distrain_nb.program.progress import report_to
from distrain_nb.worker.files.status import Progress

SIZE = 1e6


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def images(folder: Path, count: int, size: int) -> Path:
    """A folder of images as ImageFolder reads it."""
    content = random.Random(0)
    for number in range(count):
        path = folder / ("cat", "dog")[number % 2] / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.randbytes(size))
    return folder


def members(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                found[member.name] = tar.extractfile(member).read().decode()  # type: ignore[union-attr]
    return found


def test_files_of_one_key_are_a_sample(tmp_path: Path) -> None:
    names = ("a.png", "a.seg.png", "2024.05.txt", "deep/er.v2/b.JSON", "README", ".DS_Store")
    source = write(tmp_path / "in", **{name: name for name in names})
    assert pack(str(source), str(tmp_path / "out"), SIZE).samples == 4
    assert members(tmp_path / "out") == {
        "2024_05.txt": "2024.05.txt",
        "README.bin": "README",
        "a.png": "a.png",
        "a.seg.png": "a.seg.png",
        "deep/er.v2/b.json": "deep/er.v2/b.JSON",
    }


def test_folders_of_images_are_classes(tmp_path: Path) -> None:
    source = images(tmp_path / "in", count=4, size=3)
    packed = pack(str(source), str(tmp_path / "out"), SIZE)
    assert packed.classes == ("cat", "dog")
    assert str(packed).endswith("; 2 classes")
    assert str(packed._replace(classes=("cat",))).endswith("; 1 class")
    (batch,) = shards(str(tmp_path / "out"), 4)
    assert batch["__key__"] == ["cat/0000", "cat/0002", "dog/0001", "dog/0003"]
    assert batch["cls"] == [b"0", b"0", b"1", b"1"]


ROW = '{"file_name": "../dog/0001.jpg", "box": [1, 2], "text": "ein hübscher"}\n'


def test_metadata_of_image_folders_are_of_their_samples(tmp_path: Path) -> None:
    source = images(tmp_path / "in", count=4, size=3)
    table = '\ufefffile_name,text\ncat/0000.jpg,"one, two"\n./dog/0003.jpg,\n'
    write(source, **{"metadata.csv": table, "cat/metadata.jsonl": ROW})
    packed = pack(str(source), str(tmp_path / "out"), SIZE)
    assert (packed.samples, packed.classes) == (4, ("cat", "dog"))
    samples = list(shards(str(tmp_path / "out"), 1, collate=lambda batch: batch[0]))
    assert [(each["__key__"], each["cls"]) for each in samples] == [
        ("cat/0000", b"0"), ("cat/0002", b"0"), ("dog/0001", b"1"), ("dog/0003", b"1"),
    ]  # fmt: skip
    assert [json.loads(each["json"]) if "json" in each else None for each in samples] == [
        {"text": "one, two"}, None, {"box": [1, 2], "text": "ein hübscher"}, {"text": ""},
    ]  # fmt: skip
    with pytest.raises(OptionError, match="has shards of other samples"):
        write(source, **{"metadata.csv": table.replace("two", "three")})
        pack(str(source), str(tmp_path / "out"), SIZE)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("file_name,a\n0.jpg,1\n", "metadata.csv: there is no file 0.jpg"),
        ("file_name,a\na.jpg,1\na.jpg,2\n", "metadata.csv: there are two rows of a.jpg"),
        ("file_name,a\na.jpg,1,2\n", "metadata.csv, row 1 can't be read: it has more cells"),
        ("file_name,a\nb.jpg,1\n", "the metadata of b.jpg would be b.json, which exists"),
        ("file_name,a\na.jpg,\xff\n", "metadata.csv, row 1 can't be read: 'utf-8' codec"),
    ],
)
def test_metadata_of_no_file_are_told(table: str, message: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", **{"a.jpg": "a", "b.jpg": "b", "b.json": "b"})
    (source / "metadata.csv").write_text(table, encoding="latin-1")
    with pytest.raises(PackingError, match=message):
        pack(str(source), str(tmp_path / "out"))


def test_other_tables_are_files_as_any_other(tmp_path: Path) -> None:
    tables = {"metadata.csv": "name\na.jpg\n", "metadata.jsonl": ""}
    pack(str(write(tmp_path / "in", **{"a.jpg": "a"}, **tables)), str(tmp_path / "out"))
    assert members(tmp_path / "out") == {"a.jpg": "a", **tables}
    write(tmp_path / "in", **{"metadata.parquet": ""})
    with pytest.raises(OptionError, match=r"write it as metadata.csv or metadata.jsonl"):
        pack(str(tmp_path / "in"), str(tmp_path / "other"))


def test_a_shard_that_is_gone_is_packed_again(tmp_path: Path) -> None:
    rest = partial(pack, str(images(tmp_path / "in", 100, 30_000)), str(tmp_path / "out"), SIZE)
    first = rest()
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (tmp_path / "out/shard-000001.tar").unlink()
    (tmp_path / "out/shard-000002.tar").write_bytes(before["shard-000002.tar"][:-1])
    assert rest() == first._replace(kept=first.shards - 2)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert rest() == first._replace(kept=first.shards)


def test_a_list_says_order_and_classes(tmp_path: Path) -> None:
    write(tmp_path, **{"x/b.txt": "b", "a.txt": "a", "list.tsv": "x/b.txt\tyes\na.txt\tno\n"})
    assert pack(str(tmp_path / "list.tsv"), str(tmp_path / "out")).classes == ("no", "yes")
    assert members(tmp_path / "out") == {
        "x/b.cls": "1", "x/b.txt": "b", "a.cls": "0", "a.txt": "a",
    }  # fmt: skip
    (tmp_path / "list.tsv").write_text("a.txt\nmissing.txt\n")
    with pytest.raises(PackingError, match=r"list.tsv, line 2: missing.txt is not there"):
        pack(str(tmp_path / "list.tsv"), str(tmp_path / "other"))


def test_the_index_has_what_shards_have(tmp_path: Path) -> None:
    from hashlib import sha256

    source = images(tmp_path / "in", count=100, size=30_000)
    packed = pack(str(source), str(tmp_path / "out"), SIZE, shuffle=5)
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert packed.shards == len(index["shards"]) == 4
    for shard in index["shards"]:
        content = (tmp_path / "out" / shard["name"]).read_bytes()
        assert len(content) == shard["size"] <= SIZE
        assert sha256(content).hexdigest() == shard["sha256"]
    assert sum(shard["samples"] for shard in index["shards"]) == packed.samples == 100
    keys = list(members_keys(tmp_path / "out"))
    assert keys != sorted(keys)
    assert sorted(keys) == sorted({f"{('cat', 'dog')[n % 2]}/{n:04}" for n in range(100)})


def members_keys(folder: Path) -> list[str]:
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            found.update(dict.fromkeys(name.rpartition(".")[0] for name in tar.getnames()))
    return list(found)


def test_webdataset_reads_them(tmp_path: Path) -> None:
    import webdataset

    source = images(tmp_path / "in", count=6, size=50)
    long = f"{'folder-' * 20}/{'name-' * 20}ü"
    write(source, **{f"cat/{long}.jpg": "long"})
    pack(str(source), str(tmp_path / "out"), SIZE)
    read = list(webdataset.WebDataset(f"{tmp_path}/out/shard-000000.tar", shardshuffle=False))
    assert read[0]["__key__"] == "cat/0000"
    assert read[0]["jpg"] == (source / "cat/0000.jpg").read_bytes()
    (ours,) = shards(f"{tmp_path}/out", 10)
    assert [each["__key__"] for each in read] == ours["__key__"]
    assert [each["jpg"] for each in read] == ours["jpg"]


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "in", **{"a.1.txt": "1", "b.txt": "2"})
    with pytest.raises(OptionError, match="nothing is there"):
        pack(str(tmp_path / "missing"), str(tmp_path / "out"))
    with pytest.raises(OptionError, match="no files"):
        (tmp_path / "empty").mkdir()
        pack(str(tmp_path / "empty"), str(tmp_path / "out"))
    with pytest.raises(OptionError, match="is a cache of Hugging Face's datasets"):
        pack(str(write(tmp_path / "saved", **{"dataset_info.json": "{}"})), str(tmp_path / "out"))
    pack(str(source), str(tmp_path / "out"))
    with pytest.raises(OptionError, match="has shards of other samples"):
        pack(str(source), str(tmp_path / "out"), shuffle=1)
    write(source, **{"a_1.txt": "3"})
    with pytest.raises(PackingError, match=r"a.1.txt and a_1.txt would both be a_1.txt"):
        pack(str(source), str(tmp_path / "other"))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.tar").touch()
    (source / "a_1.txt").unlink()
    with pytest.raises(OptionError, match=r"has mine.tar already"):
        pack(str(source), str(tmp_path / "foreign"))


def test_a_file_that_changes_meanwhile_ends_it(tmp_path: Path) -> None:
    source = write(tmp_path / "in", **{"a.txt": "1", "b.txt": "2"})

    def grow(progress: Progress) -> None:
        if progress.phase.startswith("packing"):
            with (source / "b.txt").open("r+b") as file:  # which doesn't empty it first
                file.write(b"longer")

    with report_to(grow), pytest.raises(PackingError, match="has 6 bytes, and had 1 when"):
        pack(str(source), str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("*.tar"))


def until(share: float, pack: partial[Packed]) -> None:
    """Pack in a session of its own, and kill all of it once so much of the bytes is packed."""
    os.setsid()

    def kill(progress: Progress) -> None:
        if progress.phase.startswith("packing") and progress.done >= share * progress.total:
            os.killpg(0, signal.SIGKILL)

    with report_to(kill):
        pack()


@pytest.mark.slow
def test_killed_at_every_tenth_it_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    source = images(tmp_path / "in", count=200, size=100_000)
    pack(str(source), str(tmp_path / "whole"), SIZE, shuffle=1)
    rest = partial(pack, str(source), str(tmp_path / "killed"), SIZE, 1)
    shards = len(list((tmp_path / "whole").glob("*.tar")))
    kept = 0
    for tenth in range(1, 10):
        share = (tenth / 10 * shards - kept) / (shards - kept)  # of what is left
        process = multiprocessing.get_context("fork").Process(target=until, args=(share, rest))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        finished = len(list((tmp_path / "killed" / ".packing").glob("shard-*.json")))
        assert finished >= kept
        kept = finished
    assert kept > shards / 2
    assert rest().kept == kept
    whole, killed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("whole", "killed")
    )
    assert killed == whole
    assert rest().kept == len(whole) - 1


def test_the_verb(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    source = images(tmp_path / "in", count=4, size=3)
    shell = InteractiveShell.instance()
    run_line(["shard", str(source), "gs://pictures/shards", "--rehearse"], shell)
    target = home / "rehearsal/gs/pictures/shards"
    said = f"4 samples in 1 shard, 9 KiB, at {target}; 2 classes\n"
    assert capsys.readouterr().out == said
    assert sorted(path.name for path in target.iterdir()) == ["index.json", "shard-000000.tar"]
    for words, message in (
        (["--size", "many"], "invalid --size 'many'"),
        (["--size", "10"], "expected 1MB or more"),
        (["--on", "vertex"], "vertex packs from a bucket into a bucket, but .*/in is not in one"),
    ):
        with pytest.raises(OptionError, match=message):
            run_line(["shard", str(source), str(tmp_path / "out"), *words], shell)


@pytest.mark.parametrize("on", [[], ["--on"], ["--on", "local"], ["--help"]])
def test_a_place_that_is_this_machine_packs_without_a_job(on: list[str]) -> None:
    assert packing_options(["images", "shards", *on]) is None


def test_any_other_place_packs_in_a_job_of_its_own() -> None:
    options = packing_options(["gs://b/images", "gs://b/shards", "--on", "vertex"])
    assert options is not None and options["on"] == "vertex"
    with pytest.raises(OptionError, match="did you mean local"):
        packing_options(["images", "shards", "--on", "locl"])
