"""`%distrain doctor`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distrain_nb import __version__, doctor
from distrain_nb.backends import plugins
from distrain_nb.backends.checks import Check
from distrain_nb.config import Config
from distrain_nb.health import Health, Report, machine
from tests.kernels import Kernel
from tests.server.servers import jupyter_server


def found(report: Report, topic: str, what: str) -> tuple[Health, str, str]:
    checks = dict(report.topics)[topic]
    one = next(check for check in checks if check.subject == what)
    return one.state, one.result, one.remedy


OTHERS = """
from distrain_nb.backends.checks import Check, Health
from distrain_nb.places.local.backend import LocalBackend

class Breaks(LocalBackend):
    name, title, example = "breaks", "A place whose check breaks", {"timeout": "1h"}
    implies_primary = True

    def access(self, settled):
        yield Check("login", Health.GOOD, "as Ada")
        raise ValueError("mine")

class Lacks(Breaks):
    name, title = "lacks", "A place without its package"

    def access(self, settled):
        import nothing_of_the_kind

class Refuses(Breaks):
    name, title, example = "refuses", "A place with a wrong example", {"timeout": "never"}
"""
ASK = """
from distrain_nb.health.backends import backends
for title, checks in backends():
    for check in checks:
        print(title, check.subject, check.state.name, check.result, check.remedy, sep="|")
"""


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


def test_a_report_is_a_table_in_a_notebook() -> None:
    checks = (
        Check("Docker", Health.GOOD, "version <28>"),
        Check("bubblewrap", Health.MISSING, "not installed", "apt install bubblewrap"),
    )
    report = Report((("Images", checks),))
    shown = report._repr_html_()
    assert shown.startswith("<table>") and shown.endswith("</table>")
    for text in ("Images", "Docker", "version &lt;28&gt;", "apt install bubblewrap"):
        assert shown.count(text) == 1


def test_accounts_and_settings_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.load()
    for name, value in (("project", "mine"), ("region", "us-central1"), ("bucket", "ours")):
        config = config.changed(name, value, plugins.settings())
    config.save()
    gcloud = tmp_path / "gcloud"
    gcloud.mkdir()
    (gcloud / "application_default_credentials.json").write_text("{}")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(gcloud))
    monkeypatch.setenv("AWS_PROFILE", "work")
    report = doctor()
    detected = "complete, with what was found here (repository): "
    state, says, remedy = found(report, "Vertex AI", "settings")
    assert state is Health.GOOD and says.startswith(detected) and not remedy
    assert found(report, "Vertex AI", "login")[:2] == (
        Health.GOOD,
        str(gcloud / "application_default_credentials.json"),
    )
    assert found(report, "SageMaker", "login")[1] == "the variable AWS_PROFILE"
    assert found(report, "SageMaker", "settings")[0] is Health.MISSING


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


def test_programs_and_the_managed_notebook_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("KAGGLE_KERNEL_RUN_TYPE", "COLAB_RELEASE_TAG"):
        monkeypatch.delenv(variable, raising=False)

    def looked_at() -> dict[str, tuple[Health, str, str]]:
        checks = (*machine.local(), *machine.containers())
        return {check.subject: (check.state, check.result, check.remedy) for check in checks}

    without = looked_at()
    assert "place" not in without
    for subject, remedy in (("mpirun", "Open MPI"), ("registry", "docker-registry")):
        assert without[subject][0] is Health.MISSING and remedy in without[subject][2]
    assert without["runs"][0] is Health.GOOD and without["runs"][1].endswith(" GB free")

    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    for name in ("mpirun", "registry"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    there = looked_at()
    assert there["place"] == (Health.GOOD, "Kaggle, interactive session", "")
    assert there["mpirun"] == (Health.GOOD, str(tmp_path / "mpirun"), "")
    assert there["registry"] == (Health.GOOD, str(tmp_path / "registry"), "")
    assert "shut down" not in there  # nobody knows when Kaggle ends a session


def test_other_backends_that_break_leave_the_rest_of_the_report(home: Path, tmp_path: Path) -> None:
    """As packages bring them: a module, and entry points in the package's metadata."""
    (tmp_path / "others.py").write_text(OTHERS)
    metadata = tmp_path / "others-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1\n")
    names = ("Breaks", "Lacks", "Refuses", "Gone")
    points = (f"{name.lower()} = others:{name}\n" for name in names)
    (metadata / "entry_points.txt").write_text("[distrain_nb.backends]\n" + "".join(points))
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = {tuple(line.split("|")[:3]): line for line in asked.stdout.splitlines()}
    breaks, lacks, refuses = (
        f"A place {what}"
        for what in ("whose check breaks", "without its package", "with a wrong example")
    )
    assert seen[breaks, "login", "GOOD"].endswith("|as Ada|")
    assert "ValueError: mine" in seen[breaks, "service", "MISSING"]
    assert seen[breaks, "jobs", "BROKEN"].endswith("has no pool of primary.|")
    assert [key[1:] for key in seen if key[0] == lacks] == [("jobs", "BROKEN")]
    assert "'never'" in seen[refuses, "settings", "BROKEN"]
    assert "reinstall it" in seen["gone", "backend", "BROKEN"]
