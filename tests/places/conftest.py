"""A machine that is in no place yet: no variable, no file of anybody's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from distrain_nb.backends import negative_cache
from distrain_nb.places.sagemaker import sdk_config, studio
from distrain_nb.places.sagemaker import settings as of_aws
from distrain_nb.places.vertex import settings as of_google
from distrain_nb.places.vertex import workbench as google
from tests.sagemaker.conftest import aws  # noqa: F401 - what the SDKs ask besides

Describe = Callable[..., None]

OTHERS = (
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "VERTEX_PRODUCT", "COLAB_RELEASE_TAG", "IMAGE_VERSION",
    "KAGGLE_KERNEL_RUN_TYPE",
    "NO_GCE_CHECK",
    "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_ACTIVE_CONFIG_NAME", *google.HOSTS,
    "SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nowhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {*sum(of_google.VARIABLES.values(), ()), *of_aws.VARIABLES, *OTHERS}:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "user").mkdir()
    for name, folder in {
        "HOME": "user", "XDG_CONFIG_HOME": "user/.config", "XDG_CONFIG_DIRS": "xdg",
        "CLOUDSDK_CONFIG": "gcloud", "AWS_CONFIG_FILE": "aws/config",
        "AWS_SHARED_CREDENTIALS_FILE": "aws/credentials",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(tmp_path / folder))
    for module, answers in ((google, "_machines"), (studio, "_answers"), (sdk_config, "_from_s3"),
                            (negative_cache, "_failures")):  # fmt: skip
        monkeypatch.setattr(module, answers, {})  # what other tests' servers have answered
    monkeypatch.setattr(studio, "FILE", tmp_path / "resource-metadata.json")
    monkeypatch.setattr(google, "PRODUCT_FILE", tmp_path / "product_name")


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Write the file with which Studio describes itself, and log in to AWS."""

    def describe(**fields: str) -> None:
        (tmp_path / "resource-metadata.json").write_text(json.dumps(fields), encoding="utf-8")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    return describe
