"""Where a job goes: options before settings, the environment, and gcloud's files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.backends.options import read_options
from distrain_nb.config import Config
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.places.vertex.options import VertexJob, VertexOptions
from distrain_nb.places.vertex.settings import VARIABLES, Settings, missing_settings, settings_of
from tests.vertex.jobs import job, planned

NOWHERE = Layout.of("vertex", primary="n1-standard-8")


@pytest.fixture(autouse=True)
def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of gcloud's, and none of the variables."""
    for name in {*sum(VARIABLES.values(), ()), "CLOUDSDK_ACTIVE_CONFIG_NAME"}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    (tmp_path / "configurations").mkdir()
    return tmp_path


def resolved(asked: VertexJob) -> Settings:
    """The settings of a job to which belongs what is found on this machine."""
    return settings_of(replace(asked, defaults=VertexBackend().defaults(asked.environ)))


def write(gcloud: Path, name: str, text: str) -> None:
    (gcloud / "configurations" / f"config_{name}").write_text(text, encoding="utf-8")


def test_each_source_yields_to_the_one_before(
    gcloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(job(NOWHERE), options=VertexOptions())
    write(gcloud, "default", "[core]\nproject = of-gcloud\n[compute]\nregion = us-east1\n")
    assert resolved(asked).parent == "projects/of-gcloud/locations/us-east1"
    write(
        gcloud, "default", "[core]\nproject = p%\n[compute]\nregion = a\n[ai]\nregion = us-west1\n"
    )
    assert resolved(asked).parent == "projects/p%/locations/us-west1"
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-env")
    monkeypatch.setenv("CLOUD_ML_REGION", "us-east4")
    asked = replace(asked, environ=dict(os.environ))
    assert resolved(asked).parent == "projects/of-env/locations/us-east4"
    of_config = read_options(VertexOptions, {}, {"project": "of-config"})
    asked = replace(asked, config=Config(region="us-south1"), options=of_config)
    assert resolved(asked).parent == "projects/of-config/locations/us-south1"
    asked = replace(
        asked,
        options=read_options(VertexOptions, {"project": "of-option"}, {"project": "of-config"}),
        layout=replace(NOWHERE, region="europe-west4"),
    )
    assert resolved(asked).parent == "projects/of-option/locations/europe-west4"


def test_the_active_configuration_of_gcloud_is_read(
    gcloud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(job(NOWHERE), options=VertexOptions())
    write(gcloud, "default", "[core]\nproject = first\n")
    write(gcloud, "work", "[core]\nproject = second\n")
    write(gcloud, "broken", "no section\n")
    (gcloud / "active_config").write_text("work\n", encoding="utf-8")
    assert resolved(asked).project == "second"
    asked = replace(asked, environ={**asked.environ, "CLOUDSDK_ACTIVE_CONFIG_NAME": "default"})
    assert resolved(asked).project == "first"
    asked = replace(asked, environ={**asked.environ, "CLOUDSDK_ACTIVE_CONFIG_NAME": "broken"})
    assert resolved(asked).project == ""


def test_what_is_missing_is_named_with_each_way_to_set_it() -> None:
    found = {
        f.code: f.message
        for f in missing_settings(resolved(replace(job(NOWHERE), options=VertexOptions())))
    }
    assert set(found) == {"vertex.no-project", "vertex.no-region"}
    for way in (
        "--project my-project",
        "%distrain config project=my-project",
        "GOOGLE_CLOUD_PROJECT",
        "gcloud config set project my-project",
    ):
        assert way in found["vertex.no-project"]
    assert "gcloud config set ai/region us-central1" in found["vertex.no-region"]


def test_a_rehearsal_needs_no_account() -> None:
    plan = planned(NOWHERE, rehearse="", options={"project": "", "bucket": ""})
    assert not plan.findings
    assert plan.settings.parent == "projects/rehearsal/locations/us-central1"


def test_a_bucket_may_be_written_as_a_uri() -> None:
    assert resolved(job(options={"bucket": "gs://mine/"})).bucket == "mine"
