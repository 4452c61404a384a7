"""Values of variables are neither shown nor stored, but for as long as the job needs them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote import backend, variables
from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.run import Run
from distrain_nb.worker.files.status import State
from tests.conftest import holding

pytestmark = pytest.mark.brief

VALUE = "correct-horse-battery"
CLOUDS = {
    "vertex": {"on": "vertex", "primary": "n1-standard-4", "image": "gcr.io/p/mine:1"},
    "pipeline": {"on": "vertex", "primary": "n1-standard-4", "pipeline": True},
    "package": {
        "on": "vertex",
        "primary": "n1-standard-4",
        "python_package": True,
        "base": "europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
    },
    "sagemaker": {"on": "sagemaker", "workers": "2*ml.m5.xlarge"},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.setattr(backend, "start_carrier", lambda folder: None)


def submitted(cloud: str, *env: str) -> Run:
    run: Run = api.submit("print(1)", rehearse="", env=env, **CLOUDS[cloud])
    return run


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_value_is_shown_nowhere(cloud: str) -> None:
    prepared = api.prepare("print(1)", rehearse="", env=f"MINE={VALUE}", **CLOUDS[cloud])
    assert "MINE" in str(prepared)
    assert "The values of --env are not shown (***)." in str(prepared)
    assert VALUE not in f"{prepared} {prepared!r} {prepared.plan!r} {prepared.job!r}"
    assert VALUE in str(prepared.plan.request)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_value_is_in_one_file_of_its_owner_alone_until_the_job_is_there(
    cloud: str, tmp_path: Path
) -> None:
    folder = submitted(cloud, f"MINE={VALUE}", "OTHER=***").folder
    (file,) = holding(tmp_path, VALUE)
    assert file == folder / variables.VARIABLES_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    spec = Submission.read(folder).spec
    assert spec["variables"] == {"MINE": VALUE, "OTHER": "***"}
    sent: list[Any] = []
    service = find(CLOUDS[cloud]["on"]).service(spec, {}, folder)  # type: ignore[attr-defined]
    object.__setattr__(service, "_jobs", _Jobs(sent))
    service.create(json.loads(json.dumps(spec["request"])))
    assert str(sent).count(VALUE) == 1
    variables.delete_variables(folder)
    assert not holding(tmp_path, VALUE)


class _Jobs:
    """Takes down what would be sent."""

    def __init__(self, sent: list[Any]) -> None:
        self._sent = sent

    def create(self, *request: Any) -> str:
        self._sent.append(request)
        return "jobs/1"


def test_a_run_that_ends_before_its_job_is_there_leaves_no_value(tmp_path: Path) -> None:
    folder = submitted("sagemaker", f"MINE={VALUE}").folder
    CarriedRun(folder).end(State.FAILED, "no image")
    assert not holding(tmp_path, VALUE)


def test_values_that_are_gone_are_missed() -> None:
    with pytest.raises(DistrainError, match=r"values of --env are gone \(MINE\)"):
        variables.restored_variables({"MINE": "***", "LR": "1"}, {})


def test_a_wrong_variable_is_named_without_its_value() -> None:
    for cloud in ("vertex", "sagemaker"):
        with pytest.raises(OptionError) as caught:
            submitted(cloud, f"NOT A NAME={VALUE}")
        assert str(caught.value) == "invalid --env 'NOT A NAME': expected NAME=VALUE"


def test_a_parameter_that_is_a_secret_is_not_kept_for_comparisons(tmp_path: Path) -> None:
    api.submit("print(1)", param=(f"db_password={VALUE}", "lr=0.1"), on="local", wait=True)
    kept = [path for path in holding(tmp_path, VALUE) if "program" not in path.parts]
    assert not kept
    assert holding(tmp_path, "db_password=***")


@pytest.mark.parametrize(
    ("cloud", "given", "named"),
    [
        ("vertex", "hf", "projects/my-project/secrets/hf/versions/latest"),
        ("vertex", "hf/3", "projects/my-project/secrets/hf/versions/3"),
        ("vertex", "projects/p/secrets/hf", "projects/p/secrets/hf/versions/latest"),
        ("vertex", "projects/p/secrets/hf/versions/2", "projects/p/secrets/hf/versions/2"),
        ("sagemaker", "team/hf", "team/hf"),
        ("sagemaker", "team/logins#hf", "team/logins#hf"),
        (
            "sagemaker",
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hf-a1b2c3",
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hf-a1b2c3",
        ),
    ],
)
def test_a_secret_of_a_store_goes_by_its_name(cloud: str, given: str, named: str) -> None:
    env = f"HF_TOKEN=secret://{given}"
    prepared = api.prepare("print(1)", rehearse="", env=env, **CLOUDS[cloud])
    told = json.dumps({"HF_TOKEN": named})
    assert json.dumps(told)[1:-1] in json.dumps(prepared.plan.request)  # type: ignore[attr-defined]
    assert "HF_TOKEN" in str(prepared)
    assert named in str(prepared)
    api.start(prepared)


@pytest.mark.parametrize(("cloud", "given"), [("vertex", "a b"), ("vertex", ""), ("sagemaker", "")])
def test_what_names_no_secret(cloud: str, given: str) -> None:
    with pytest.raises(OptionError, match=r"invalid --env 'X=secret://.*expected secret://"):
        submitted(cloud, f"X=secret://{given}")


def test_a_job_without_network_can_fetch_no_secret() -> None:
    found = api.check(
        "print(1)", rehearse="", isolate=True, env="X=secret://x", **CLOUDS["sagemaker"]
    )
    assert "sagemaker.isolated-secret" in {finding.code for finding in found}
