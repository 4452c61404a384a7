"""What `--data` is to a program: the folder of a channel, or the FIFO of its first pass."""

from __future__ import annotations

import pytest

from distrain_nb.api import Prepared, check, prepare
from tests.sagemaker.jobs import PLACE

FOLDER = "/opt/ml/input/data"
UNUSED = "capture.unused-name"


def prepared(code: str, data: str) -> Prepared:
    return prepare(code, on="sagemaker", workers="ml.m5.large", data=data, **PLACE)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("train=s3://b/p", f"{FOLDER}/train"),
        ("train=s3://b/p,mode=FastFile", f"{FOLDER}/train"),
        ("train=s3://b/p,mode=Pipe", f"{FOLDER}/train_0"),
        ("train=/opt/ml/input/data/other", f"{FOLDER}/other"),
    ],
)
def test_a_name_stands_for_what_is_there(data: str, name: str) -> None:
    assert f"train = {name!r}" in prepared("open(train)", data).job.program.main


@pytest.mark.parametrize(
    ("code", "data", "warned"),
    [
        (f"open('{FOLDER}/train_0')", "train=s3://b/p,mode=Pipe", False),
        (f"open('{FOLDER}/train/a')", "train=s3://b/p", False),
        ("print()", "train=/opt/ml/input/data/other", True),
        ("train = 1", "train=s3://b/p", True),
    ],
)
def test_a_channel_is_read_by_its_path_too(code: str, data: str, warned: bool) -> None:
    found = check(code, on="sagemaker", workers="ml.m5.large", data=data, **PLACE)
    assert (UNUSED in [each.code for each in found]) == warned
