"""What a machine lacks for a rehearsal is one list, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal import needs
from distrain_nb.run import Store

pytestmark = pytest.mark.brief


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without programs, and with a place for runs."""
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("empty")
def test_all_that_is_missing_is_named_at_once() -> None:
    packages, registry, containers = needs.missing_requirements(
        {"no_such.thing": "no-such"}, engine=True
    )
    assert packages == "no-such: not installed; pip install 'distrain-nb[rehearsal]'"
    assert "docker-registry" in registry
    assert "bubblewrap" in containers
    assert len(needs.missing_requirements({"json": "json"}, engine=False)) == 1


@pytest.mark.usefixtures("empty")
def test_a_rehearsal_is_refused_before_its_process_is_started() -> None:
    with pytest.raises(DistrainError) as refused:
        api.submit("print(1)", on="sagemaker", rehearse="", workers="ml.m5.xlarge")
    first, registry, containers = str(refused.value).splitlines()
    assert first == "SageMaker needs more on this machine:"
    assert "docker-registry" in registry
    assert "bubblewrap" in containers
    assert all(not (run.folder / "submission.json").exists() for run in Store().all())


@pytest.mark.usefixtures("empty")
def test_one_that_is_missing_is_a_sentence() -> None:
    with pytest.raises(DistrainError, match="Vertex AI: no registry for images; apt-get"):
        api.submit("print(1)", on="vertex", rehearse="", primary="n1-standard-4")
