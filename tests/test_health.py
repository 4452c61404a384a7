"""`%distrain doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import __version__, doctor
from distrain_nb.health import Health, Report
from tests.kernels import Kernel
from tests.server.servers import jupyter_server


def found(report: Report, topic: str, what: str) -> tuple[Health, str, str]:
    checks = dict(report.topics)[topic]
    one = next(check for check in checks if check.subject == what)
    return one.state, one.result, one.remedy


@pytest.fixture(autouse=True)
def no_accounts(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))


def test_what_is_there_and_what_to_do_about_the_rest(tmp_path: Path, nb: Kernel) -> None:
    report = doctor()
    assert found(report, "This machine", "distrain-nb")[1].startswith(__version__)
    assert "torch 2" in found(report, "This machine", "frameworks")[1]
    assert str(tmp_path / "home") in found(report, "This machine", "runs")[1]
    assert found(report, "Images and rehearsals", "containers")[0] is Health.GOOD
    assert found(report, "Vertex AI", "packages")[0] is Health.GOOD
    login, settings = (found(report, "Vertex AI", name) for name in ("login", "settings"))
    assert login[0] is Health.MISSING and "gcloud auth" in login[2]
    assert settings[1] == "not set: project, region"
    outcome = nb.outcome(nb.send("%distrain doctor", on_a_page=True))
    *signs, shown = [display["text/plain"] for display in outcome.displays]
    assert "✓ distrain-nb" in shown and "not set: project" in shown
    assert signs[0] == "Checking this machine…" and "Checking Vertex AI…" in signs
    assert outcome.cleared == len(signs)  # nothing is left of them


def test_accounts_and_settings_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nb: Kernel
) -> None:
    nb.run("%distrain config project=mine region=us-central1 bucket=ours")
    gcloud = tmp_path / "gcloud"
    gcloud.mkdir()
    (gcloud / "application_default_credentials.json").write_text("{}")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(gcloud))
    monkeypatch.setenv("AWS_PROFILE", "work")
    report = doctor()
    assert found(report, "Vertex AI", "settings")[0] is Health.GOOD
    assert found(report, "Vertex AI", "login")[:2] == (
        Health.GOOD,
        str(gcloud / "application_default_credentials.json"),
    )
    assert found(report, "SageMaker", "login")[1] == "the variable AWS_PROFILE"


@pytest.mark.slow
def test_a_server_is_asked_for_the_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with jupyter_server(tmp_path / "with") as server:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "with" / "runtime"))
        assert found(doctor(), "Notebooks", "server")[:2] == (
            Health.GOOD,
            f"{server.url} has the extension, {__version__}",
        )


@pytest.mark.slow
def test_a_server_without_it_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with jupyter_server(tmp_path / "without", enabled=False) as server:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "without" / "runtime"))
        state, says, remedy = found(doctor(), "Notebooks", "server")
    assert (state, says) == (Health.MISSING, f"{server.url} has no distrain-nb")
    assert "install distrain-nb where the server is" in remedy


def test_what_can_not_be_used_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", "/proc/runs")
    report = doctor()
    state, says, remedy = found(report, "This machine", "runs")
    assert "/proc" in says
    assert state is Health.BROKEN
    assert "DISTRAIN_HOME" in remedy
    for place, program in (("Vertex AI", "gcloud auth"), ("SageMaker", "aws configure")):
        state, _, remedy = found(report, place, "login")
        assert state is Health.MISSING and program in remedy
