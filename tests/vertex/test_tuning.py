"""A study's request, as the API's own models have it, and what its trials tell the service."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from google.protobuf.json_format import MessageToDict, ParseDict

from distrain_nb.errors import CheckFailed
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.backend import VertexBackend
from distrain_nb.places.vertex.plan import VertexSpec
from distrain_nb.places.vertex.study_service import VertexStudy
from distrain_nb.places.vertex.tuning_jobs import service_trial
from distrain_nb.places.vertex.tuning_plan import VertexStudyPlan
from distrain_nb.study import prepare
from distrain_nb.tuning import options
from distrain_nb.tuning.spec import StudySpec
from tests.vertex.jobs import planned

if TYPE_CHECKING:
    from types import ModuleType

OPTIONS = {
    "tune": ["lr=1e-5..1e-1:log", "width=16|32", "kind=a|b", "momentum[kind=a]=0.5..0.9"],
    "goal": "min:val/loss",
    "trials": 20,
    "parallel": 2,
    "max_failed": 3,
    "stop": "median",
}
POOLS = {"primary": "n1-standard-4", "workers": "2*n1-standard-4", "servers": "n1-standard-4"}


def study(**changes: Any) -> StudySpec:
    return options.study({**OPTIONS, **changes})


def study_plan(spec: StudySpec | None = None, **more: Any) -> VertexStudyPlan:
    layout = more.pop("layout", None) or Layout.of("vertex", region="us-central1", **POOLS)
    return VertexBackend().plan_study(planned(layout, **more), spec or study())


@pytest.fixture(scope="module")
def types() -> ModuleType:
    """The API's models, which take two seconds to import: no process does so to collect tests."""
    from google.cloud.aiplatform_v1 import types

    return types


def sent(plan: VertexStudyPlan, types: ModuleType) -> Any:
    """The request as the client sends it. Raises ParseError for what its model doesn't know."""
    empty = types.HyperparameterTuningJob.pb(types.HyperparameterTuningJob())
    return types.HyperparameterTuningJob.wrap(ParseDict(plan.spec().request, empty))


def kept(spec: VertexSpec) -> dict[str, Any]:
    """As a submission has it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(spec)))
    return found


def test_the_trials_job_is_the_custom_job_and_its_workers_know_the_goals(types: ModuleType) -> None:
    plan = study_plan(name="bowl")
    job = sent(plan, types)
    assert (job.display_name, job.max_trial_count, job.parallel_trial_count) == ("bowl", 20, 2)
    assert job.max_failed_trial_count == 3
    assert "median_automated_stopping_spec" in job.study_spec
    assert job.labels["distrain_run"] == plan.spec().run
    pools = job.trial_job_spec.worker_pool_specs
    assert [pool.replica_count for pool in pools] == [1, 2, 1]
    for pool in pools:
        variables = {each.name: each.value for each in pool.container_spec.env}
        assert variables["DISTRAIN_GOALS"] == '["val/loss"]'
        assert variables["DISTRAIN_OUTPUT"] == f"gs://my-bucket/distrain/{plan.spec().run}"
    alone = planned(Layout.of("vertex", region="us-central1", **POOLS), name="bowl")
    assert "DISTRAIN_GOALS" not in str(alone.request)


def test_the_printed_command_counts_trials_and_its_file_is_the_job(types: ModuleType) -> None:
    text = str(study_plan(name="bowl"))
    command = next(line for line in text.splitlines() if "gcloud ai" in line)
    assert command.startswith("# gcloud ai hp-tuning-jobs create --config=FILE")
    assert "--max-trial-count=20 --parallel-trial-count=2" in command
    config = yaml.safe_load(text)
    assert {"studySpec", "trialJobSpec", "maxFailedTrialCount"} <= config.keys()
    ParseDict(config, types.HyperparameterTuningJob.pb(types.HyperparameterTuningJob()))


def test_variables_are_hidden_in_the_trials_job_too() -> None:
    plan = study_plan(env=("WHO=somebody",))
    assert "somebody" not in str(plan) + str(plan.spec().request)
    assert plan.spec().variables == {"WHO": "somebody"}


def test_a_study_has_no_retries_of_its_own() -> None:
    layout = Layout.of("vertex", region="us-central1", retries=2, **POOLS)
    (finding,) = study_plan(layout=layout).findings
    assert (finding.code, finding.where) == ("vertex.study-retries", "retries")


def test_a_study_is_no_training_pipeline() -> None:
    (finding,) = study_plan(pipeline=True).findings
    assert (finding.code, finding.where) == ("vertex.study-pipeline", "pipeline")


def test_trials_are_runs_of_their_own_in_an_experiment() -> None:
    account = {"service_account": "a@b"}
    (finding,) = study_plan(experiment="trials/third", **account).findings
    assert (finding.code, finding.where) == ("vertex.study-run", "experiment")
    assert not study_plan(experiment="trials", **account).findings


def test_an_own_container_hands_the_values_on() -> None:
    layout = Layout.of("vertex", primary="n1-standard-4", image="eu.gcr.io/p/mine:1")
    pool = study_plan(layout=layout).spec().request["trialJobSpec"]["workerPoolSpecs"][0]  # type: ignore[index, call-overload]
    command = pool["containerSpec"]["command"]  # type: ignore[index, call-overload]
    assert command[2].endswith('"$@"') and command[3:] == ["sh"]


def test_a_trial_as_the_service_tells_of_it(types: ModuleType) -> None:
    trial = types.Trial(
        id="3",
        state=types.Trial.State.ACTIVE,
        parameters=[{"parameter_id": "lr", "value": 0.5}, {"parameter_id": "kind", "value": "a"}],
        custom_job="projects/1/locations/us-central1/customJobs/7",
        measurements=[
            {"step_count": 1, "metrics": [{"metric_id": "val/loss", "value": 2.0}]},
            {"step_count": 2, "metrics": [{"metric_id": "val/loss", "value": 1.5}]},
        ],
    )
    said = service_trial(trial)
    assert (said.number, said.state, said.goals, said.steps) == (3, "running", {"val/loss": 1.5}, 2)
    assert dict(said.parameters) == {"lr": 0.5, "kind": "a"}
    trial.state = types.Trial.State.SUCCEEDED
    trial.final_measurement = {"step_count": 1, "metrics": [{"metric_id": "val/loss", "value": 1}]}
    assert (service_trial(trial).state, service_trial(trial).goals) == (
        "succeeded",
        {"val/loss": 1.0},
    )


def test_the_run_of_a_trial_has_its_output_below_the_studys(types: ModuleType) -> None:
    plan, tuning = study_plan(name="bowl"), "projects/1/locations/us-central1/x/9"
    service = VertexBackend().service(kept(plan.spec()), {}, Path())
    assert isinstance(service, VertexStudy)
    spec = service.trial_spec(tuning, service_trial(types.Trial(id="3", custom_job="customJobs/7")))
    assert (spec.run, spec.bucket) == (f"{plan.spec().run}/3", "my-bucket")
    of_trial = VertexBackend().service(kept(spec), {}, Path())
    assert type(of_trial).__name__ == "VertexService" and isinstance(spec, VertexSpec)
    assert of_trial._folder == f"distrain/{plan.spec().run}/3/"


def test_a_dry_run_prints_the_study_and_what_would_be_sent(home: Path) -> None:
    where = {"on": "vertex", "primary": "n1-standard-4", "project": "p", "region": "us-central1"}
    code = "from distrain_nb import log_metrics\nlog_metrics(loss=x)"
    prepared = prepare(code, tune="x=0.0..1.0", goal="min:loss", trials=4, parallel=2, **where)
    prepared.refuse()
    text = str(prepared)
    assert "--tune x=0.0..1.0" in text and "log_metrics(loss=x)" in text
    assert "gcloud ai hp-tuning-jobs create --config=FILE --project=p" in text
    assert "parameterId: x" in text
    refused = prepare(code, tune="x=0.0..1.0", goal="min:loss", pipeline=True, **where)
    with pytest.raises(CheckFailed, match="not sent as a training pipeline"):
        refused.refuse()


def test_the_studys_spec_comes_back_from_the_request(types: ModuleType) -> None:
    from distrain_nb.places.vertex.forms.study import from_tuning_job

    job = sent(study_plan(), types)
    back = from_tuning_job(MessageToDict(type(job).pb(job)))
    assert back.spec == study()
