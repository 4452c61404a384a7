"""What a remote backend of another package is spared, and what it says of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import distrain_nb
from distrain_nb.backends.options import declared
from distrain_nb.backends.remote.options import CloudOptions, RemoteOptions
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.health.backends import backends
from distrain_nb.places.sagemaker.backend import SageMakerBackend
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.study.starting import prepare
from tests import guests
from tests.processes import ProcessBackend, ProcessPlan

LAB = {"on": "vertex", "workers": "2*n1-standard-4", "region": "us-central1"}


class DemandingBackend(ProcessBackend):
    """Its small job lacks a setting, and its machines are away."""

    name = "demanding"
    example: ClassVar[dict[str, str]] = {"jobs": "here"}
    packages, extra = ("no-such-distribution",), "demanding"

    def plan(self, job: Any) -> ProcessPlan:
        missing = Finding("demanding.region", Severity.ERROR, "region", "no region")
        away = Finding("demanding.away", Severity.ERROR, "on", "its machines are away")
        return ProcessPlan(job, findings=(missing, away))


@pytest.fixture
def demanding(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with guests.installed(DemandingBackend, tmp_path / "site", monkeypatch):
        yield


def test_a_backend_has_only_the_options_that_it_derives() -> None:
    assert list(declared(RemoteOptions)) == ["env"]
    assert {"label", "base", "builder", "bucket", "rehearse"} < set(declared(CloudOptions))
    assert not RemoteOptions().rehearsed and CloudOptions(rehearse="").rehearsed
    readable = CloudOptions(label=("a=b",), env=("c=d",)).readable()
    assert readable == {"label": ("a=b",), "env": ("c=d",)}


def test_what_it_does_not_derive_is_refused(demanding: None) -> None:
    with pytest.raises(OptionError, match="--base has no meaning on other processes"):
        distrain_nb.check("1", on="demanding", jobs="x", base="python:3.11")


def test_missing_packages_are_named_before_anything_is_sent(
    demanding: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DemandingBackend, "plan", lambda self, job: ProcessPlan(job))
    expected = r"other processes: no-such-distribution: not installed; pip install .*\[demanding\]"
    with pytest.raises(DistrainError, match=expected):
        distrain_nb.submit("1", on="demanding", jobs=str(tmp_path / "jobs"))
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("backend", [VertexBackend, SageMakerBackend])
def test_clouds_name_theirs(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(iter(backend().checks())).result.startswith(backend.packages[0])


def test_doctor_names_settings_alone_as_what_to_set(demanding: None) -> None:
    checks = dict(backends())["other processes"]
    said = {(check.subject, check.result, check.remedy) for check in checks}
    assert said == {
        ("jobs", "its machines are away", ""),
        ("settings", "not set: region", "%distrain config region=… keeps them"),
    }


def test_the_dry_run_of_a_study_shows_what_is_wrong_with_its_job(home: Path) -> None:
    (finding,) = [f for f in distrain_nb.check("1", **LAB) if f.code == "primary-missing"]
    assert str(finding) in str(prepare("print(x)", tune="x=1..3", goal="min:loss", **LAB))
