"""Datasets that Hugging Face's own package has saved, as shards."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from distrain_nb.data import pack, shards
from distrain_nb.errors import OptionError

pytestmark = pytest.mark.slow

COUNT = 7


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with classes, captions, and what is neither, in two files."""
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, Value
    from PIL import Image as Pillow

    def picture(number: int) -> bytes:
        file = io.BytesIO()
        Pillow.new("RGB", (4, 4), (number, 0, 0)).save(file, "PNG")
        return file.getvalue()

    features = Features(
        image=Image(), label=ClassLabel(names=["cat", "dog"]), caption=Value("string"),
        boxes=[Value("int32")], raw=Value("binary"),
    )  # fmt: skip
    rows = {
        "image": [{"bytes": picture(n), "path": None} for n in range(COUNT)],
        "label": [n % 2 for n in range(COUNT)],
        "caption": [f"näme {n}" if n else None for n in range(COUNT)],
        "boxes": [[n, n + 1] for n in range(COUNT)],
        "raw": [bytes([n]) * 3 for n in range(COUNT)],
    }
    folder = tmp_path_factory.mktemp("saved")
    dataset = Dataset.from_dict(rows, features)
    dataset.save_to_disk(folder / "pictures", num_shards=2)
    dataset.select(range(0)).save_to_disk(folder / "empty")
    DatasetDict(train=dataset, test=dataset).save_to_disk(folder / "splits")
    return folder


@pytest.mark.brief
def test_rows_are_samples(saved: Path, tmp_path: Path) -> None:
    from datasets import load_from_disk

    packed = pack(str(saved / "pictures"), str(tmp_path / "out"))
    assert (packed.samples, packed.classes) == (COUNT, ("cat", "dog"))
    rows = load_from_disk(saved / "pictures")
    samples = list(shards(str(tmp_path / "out"), 1, collate=lambda batch: batch[0]))
    assert len(samples) == COUNT
    for number, (row, sample) in enumerate(zip(rows, samples, strict=True)):
        from PIL import Image as Pillow

        assert sample["__key__"] == f"{number:09}"
        assert Pillow.open(io.BytesIO(sample["png"])).getpixel((0, 0)) == (number, 0, 0)
        assert int(sample["cls"]) == row["label"]
        assert sample.get("caption.txt", b"").decode() == (row["caption"] or "")
        assert json.loads(sample["boxes.json"]) == row["boxes"]
        assert sample["raw.bin"] == row["raw"]
    assert "caption.txt" not in samples[0]


@pytest.mark.brief
def test_they_are_shuffled_and_told_apart(saved: Path, tmp_path: Path) -> None:
    source, target = str(saved / "splits" / "train"), str(tmp_path / "out")
    pack(source, target, shuffle=1)
    keys = [sample["__key__"] for sample in shards(target, 1, collate=lambda batch: batch[0])]
    assert keys != sorted(keys) and len(set(keys)) == COUNT
    assert pack(source, target, shuffle=1).kept == 1
    with pytest.raises(OptionError, match="has shards of other samples"):
        pack(source, target, shuffle=2)


@pytest.mark.brief
def test_what_is_no_table_of_samples_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"several splits: name one of .* \(train, test\)"):
        pack(str(saved / "splits"), str(tmp_path / "out"))
    with pytest.raises(OptionError, match="the dataset has no rows"):
        pack(str(saved / "empty"), str(tmp_path / "out"))
