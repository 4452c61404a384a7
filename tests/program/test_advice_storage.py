"""Advice about small files that are read from a bucket one by one, and where none is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.findings import Finding
from distrain_nb.program.advice import BUCKETS, RemoteFolder, about_storage, findings, told_by
from distrain_nb.worker.rank.program import Segment

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").rglob("*.py"))
FILES = "advice.data.small-files"
HEAD = """\
import glob, os, torch, cv2
import numpy as np, tensorflow as tf, webdataset as wds
from pathlib import Path
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import ImageFolder
"""
OF_PATHS = """
class Images(Dataset):
    def __init__(self, root):
        self.paths = sorted(glob.glob(f"{root}/*/*"))
    def __getitem__(self, index):
        path = self.paths[index]
        return Image.open(path)
images = Images("/gcs/b/train")
"""
WASTEFUL = {
    "a tree": ('ImageFolder(os.path.join("/gcs/b", "train"))', {FILES}),
    "in a loader": ('DataLoader(ImageFolder("/gcs/b/train"), 4)', {FILES}),
    "with workers": ('DataLoader(ImageFolder("/gcs/b/train"), num_workers=4)', {FILES}),
    "by index": (f"{OF_PATHS}loader = DataLoader(images, 4, num_workers=0)", {FILES}),
    "by TensorFlow": ('tf.data.Dataset.list_files("/gcs/b/*/*.jpg").map(tf.io.read_file)', {FILES}),
}
RIGHT = {
    "files of this machine": 'DataLoader(ImageFolder("/mnt/disk/train"), 4)',
    "shards": 'DataLoader(wds.WebDataset("/gcs/b/{0..9}.tar"), num_workers=4)',
    "one file": 'words = open("/gcs/b/words.txt").read().split()',
    "one array that is indexed": """
class Rows(Dataset):
    def __init__(self, path):
        self.rows = np.load(path)
    def __getitem__(self, index):
        return Image.open(self.rows[index])
loader = DataLoader(Rows("/gcs/b/rows.npy"))
""",
    "a list of shards": 'for path in glob.glob("/gcs/b/*.tar"):\n    open(path).read()',
    "checkpoints": 'for path in sorted(glob.glob("/gcs/b/step-*")):\n    torch.load(path)',
    "logs": 'for path in Path("/gcs/b/logs").iterdir():\n    print(path.read_text())',
    "what is written": 'for epoch in range(9):\n    open(f"/gcs/b/{epoch}.txt", "w").write("x")',
    "data in memory": 'DataLoader(torch.utils.data.TensorDataset(torch.load("/gcs/b/all.pt")), 4)',
    "options that are handed on": 'DataLoader(wds.WebDataset("/gcs/b/{0..9}.tar"), **options)',
}


def told(source: str, *remote: RemoteFolder) -> list[Finding]:
    main = f"{HEAD}{source}\n"
    segments = (Segment(1, main.count("\n"), "Cell In[1]", 1, is_cell=True),)
    return list(about_storage(main, segments, remote or (BUCKETS,)))


@pytest.mark.parametrize("name", WASTEFUL)
def test_what_waits_for_a_bucket_is_found(name: str) -> None:
    source, expected = WASTEFUL[name]
    assert {each.code for each in told(source)} == expected


@pytest.mark.parametrize("name", RIGHT)
def test_what_reads_well_gets_no_advice(name: str) -> None:
    assert [str(each) for each in told(RIGHT[name])] == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_get_no_advice_wherever_their_files_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    segments = (Segment(1, text.count("\n") + 1, path.name, 1, is_cell=True),)
    assert about_storage(text, segments, (RemoteFolder(""),)) == ()


def test_the_line_to_write_names_the_bucket_and_the_number() -> None:
    (found,) = told('ImageFolder("/gcs/b/train")')
    assert found.where == "Cell In[1], line 7"
    assert "`%distrain shard gs://b/train gs://b/train-shards`" in found.message
    assert "`from distrain_nb import data`, data.shards(pattern, batch_size)" in found.message
    (found,) = told('ImageFolder("/gcs/b")')
    assert "`%distrain shard gs://b TARGET`" in found.message
    (found,) = told('ImageFolder(f"/gcs/{bucket}/train")')
    assert "`%distrain shard SOURCE TARGET`" in found.message
    known = RemoteFolder("/gcs/b/train", "/home/me/images", 20_000, 400_000_000)
    (found,) = told('ImageFolder("/gcs/b/train")', BUCKETS, known)
    assert "(20,000 here)" in found.message
    assert "`%distrain shard /home/me/images /home/me/images-shards`" in found.message


@pytest.mark.parametrize(("files", "size"), [(999, 999), (5000, 5000 << 20)])
def test_few_files_and_large_ones_are_no_matter(files: int, size: int) -> None:
    known = RemoteFolder("/gcs/b/train", "images", files, size)
    assert told('ImageFolder("/gcs/b/train")', BUCKETS, known) == []
    assert told('ImageFolder("/gcs/b/train")', BUCKETS)


def test_arguments_of_scripts_and_variables_name_folders() -> None:
    parsed = "args = parser.parse_args()\nImageFolder(args.data_dir)"
    (folder,) = told_by(["--epochs", "3", "--data-dir=/gcs/b/train"], {}, (BUCKETS,))
    (found,) = told(parsed, BUCKETS, folder)
    assert "gs://b/train" in found.message
    few = RemoteFolder("/gcs/b/train", "images", 999, 999)
    (folder,) = told_by(["--data-dir", "/gcs/b/train"], {}, (BUCKETS, few))
    assert told(parsed, BUCKETS, few, folder) == []
    (folder,) = told_by([], {"SM_CHANNEL_TRAIN": "/gcs/b/train"}, (BUCKETS,))
    (found,) = told('ImageFolder(os.environ["SM_CHANNEL_TRAIN"])', BUCKETS, folder)
    assert "gs://b/train" in found.message
    assert told(parsed, BUCKETS) == []
    variables = frozenset({"SM_CHANNEL_TRAIN"})
    channel = RemoteFolder("/opt/ml/input/data/train", "s3://b/train", variables=variables)
    default = 'parser.add_argument("--data-dir", default=os.environ["SM_CHANNEL_TRAIN"])\n'
    (found,) = told(default + parsed, channel)
    assert "s3://b/train" in found.message


@pytest.mark.parametrize(("mode", "expected"), [("", set[str]()), (",mode=FastFile", {FILES})])
def test_a_channel_is_remote_where_its_files_are_fetched_when_opened(
    home: Path, mode: str, expected: set[str]
) -> None:
    code = "from torchvision.datasets import ImageFolder\nfrom torch.utils.data import DataLoader\n"
    found = api.check(
        f"{code}DataLoader(ImageFolder(train))",
        on="sagemaker",
        workers="ml.m5.large",
        data=f"train=s3://b/train{mode}",
    )
    assert {each.code for each in found if each.code.startswith("advice.data")} == expected


def test_a_folder_that_is_uploaded_tells_its_number(home: Path, tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.jpg").touch()
    found = api.check(
        "from torchvision.datasets import ImageFolder\nImageFolder(train)",
        on="vertex",
        primary="n1-standard-4",
        data=f"train={tmp_path}",
    )
    (said,) = [each for each in found if each.code == FILES]
    assert "(1,000 here)" in said.message
    assert said.where.endswith("line 2")


def test_a_job_here_is_told_nothing(home: Path) -> None:
    found = api.check('from torchvision.datasets import ImageFolder\nImageFolder("/gcs/b/train")')
    assert "advice" not in {each.code.partition(".")[0] for each in found}
    assert FILES in {each.code for each in findings('ImageFolder("/gcs/b/train")', "Cell In[1]")}
