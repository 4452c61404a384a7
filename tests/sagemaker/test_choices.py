"""Instance types to choose from, of which SageMaker takes the first that has capacity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import submit
from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.processes import processes_of
from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.instances import Instances
from distrain_nb.places.sagemaker.jobs import observed
from distrain_nb.places.sagemaker.stand_in import SYNTAX as SAGEMAKER
from distrain_nb.places.sagemaker.stand_in.instances import check_choices, with_available_instances
from distrain_nb.places.sagemaker.tuning_plan import plan_study
from distrain_nb.places.vertex.stand_in import SYNTAX as VERTEX
from distrain_nb.rehearsal.failures import ApiError, JobFailed
from distrain_nb.rehearsal.faults import Faults
from distrain_nb.tuning import options
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.replica.rank_count import per_replica

from .jobs import PLAN, SCRIPT, laid, planned

BOTH = "2*ml.p4d.24xlarge|4*ml.g5.12xlarge"


def codes(plan: Any) -> set[str]:
    return {finding.code for finding in plan.findings}


def test_counts_are_one_for_all_or_one_for_each() -> None:
    same = planned(laid("3*ml.p4d.24xlarge|ml.g5.48xlarge")).request
    assert same["ResourceConfig"]["InstancePreferences"] == [
        {"InstanceType": "ml.p4d.24xlarge"}, {"InstanceType": "ml.g5.48xlarge"},
    ]  # fmt: skip
    assert same["ResourceConfig"]["InstanceCount"] == 3
    assert same["Environment"]["DISTRAIN_RANKS"] == "8"
    each = planned(laid(BOTH)).request
    assert each["ResourceConfig"]["InstancePreferences"] == [
        {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
        {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 4},
    ]
    assert not {"InstanceCount", "InstanceType"} & each["ResourceConfig"].keys()
    assert each["Environment"]["DISTRAIN_RANKS"] == "ml.p4d.24xlarge=8,ml.g5.12xlarge=4"


def test_the_primary_is_one_of_each_choice() -> None:
    def counts(layout: Layout) -> list[int]:
        choices = planned(layout).request["ResourceConfig"]["InstancePreferences"]
        return [choice["InstanceCount"] for choice in choices]

    one = "ml.p4d.24xlarge|3*ml.g5.12xlarge"
    assert counts(laid(one)) == [1, 3]
    assert counts(laid("2*ml.p4d.24xlarge|ml.g5.12xlarge", primary=one)) == [3, 5]
    assert counts(laid("2*ml.p4d.24xlarge|1*ml.g5.12xlarge")) == [2, 1]


def test_a_training_plan_is_for_the_first() -> None:
    resources = planned(laid(BOTH), options={"reservation": PLAN}).request["ResourceConfig"]
    assert "TrainingPlanArn" not in resources
    first, second = resources["InstancePreferences"]
    assert first["TrainingPlanArns"] == [PLAN] and "TrainingPlanArns" not in second


def test_a_key_is_for_the_volumes_of_those_that_have_any() -> None:
    def key(workers: str) -> tuple[bool, bool]:
        plan = planned(laid(workers), options={"kms_key": "key-1"})
        has_key = "VolumeKmsKeyId" in plan.request["ResourceConfig"]
        return has_key, "sagemaker.kms-choices" in codes(plan)

    assert key("ml.p4d.24xlarge|ml.g5.12xlarge") == (False, False)
    assert key("ml.p4d.24xlarge|ml.p3.2xlarge") == (True, True)
    assert key("ml.p3.2xlarge|ml.p3.8xlarge") == (True, False)


def test_ranks_of_script_mode_are_the_containers_to_count() -> None:
    asked = laid(BOTH, launcher="mpi", framework="pytorch-2.0.1")
    assert (
        "sagemaker_mpi_num_of_processes_per_host"
        not in planned(asked, options=SCRIPT).request["HyperParameters"]
    )
    chosen = laid(BOTH, launcher="mpi", framework="pytorch-2.0.1", ranks_per_replica=4)
    told = planned(chosen, options=SCRIPT).request["HyperParameters"]
    assert told["sagemaker_mpi_num_of_processes_per_host"] == "4"


def test_a_container_asks_for_its_own_type_where_there_are_several() -> None:
    def told(workers: str) -> Any:
        layout = laid(workers, framework="pytorch-2.0.1", distribution="smdistributed.dataparallel")
        return planned(layout, options=SCRIPT).request["HyperParameters"]

    assert told("2*ml.p4d.24xlarge")["sagemaker_instance_type"] == '"ml.p4d.24xlarge"'
    assert "sagemaker_instance_type" not in told("2*ml.p4d.24xlarge|ml.p4de.24xlarge")


def test_advice_is_for_the_most_replicas_and_ranks_that_there_may_be() -> None:
    assert laid("ml.p4d.24xlarge|3*ml.g5.12xlarge").size == 3
    assert Layout.of("vertex", primary="one|3*other").size == 1, "which reads no alternatives"
    plan = planned(laid("ml.g5.xlarge|ml.g5.12xlarge"), options={"encrypt": True})
    assert plan.ranks_per_replica == 4
    assert "sagemaker.encrypt" in codes(plan)
    assert "sagemaker.encrypt" not in codes(
        planned(laid("ml.g5.xlarge|2*ml.g5.12xlarge"), options={"encrypt": True})
    )


def test_trials_have_them_too() -> None:
    study = plan_study(planned(laid(BOTH)), options.study({"tune": ["a=1..2"], "goal": "max:b"}))
    definition: Any = study.request["TrainingJobDefinition"]
    assert len(definition["ResourceConfig"]["InstancePreferences"]) == 2
    assert not errors(study.findings)


@pytest.mark.parametrize(
    ("workers", "image", "code"),
    [
        ("ml.p4d.24xlarge|ml.g5.12xlarge", "", ""),
        ("ml.p4d.24xlarge|ml.m5.xlarge", "", "accelerator.choices"),
        ("ml.p4d.24xlarge|ml.trn1.32xlarge", "", "accelerator.choices"),
        ("ml.p4d.24xlarge|ml.m5.xlarge", "registry/mine:1", ""),
    ],
)
def test_one_image_serves_all(workers: str, image: str, code: str) -> None:
    plan = planned(laid(workers), options={"base": image} if image else {})
    found = {finding.code for finding in errors(plan.findings)}
    assert code in found if code else not found


@pytest.mark.parametrize(
    ("text", "machine", "ranks"),
    [("8", "", 8), ("a=8,b=4", "b", 4), ("a=8,b=4", "a", 8), ("a=8,b=4", "other", 4)],
)
def test_a_host_has_the_ranks_of_its_type(text: str, machine: str, ranks: int) -> None:
    assert per_replica(text, machine) == ranks


def chosen(**resources: Any) -> dict[str, Any]:
    return {"TrainingJobStatus": "InProgress", "SecondaryStatus": "Training",
            "ResourceConfig": resources}  # fmt: skip


def test_the_phase_names_what_was_taken() -> None:
    taken = chosen(SelectedInstanceType="ml.g5.12xlarge", SelectedInstanceCount=4)
    assert observed(taken).phase == "running on 4*ml.g5.12xlarge"
    assert observed(chosen(InstanceType="ml.m5.xlarge", InstanceCount=1)).phase == "running"


def test_processes_are_those_of_what_was_taken_and_it_is_said_once() -> None:
    answers: list[tuple[str, int] | None] = [None, ("ml.g5.12xlarge", 4)]
    instances = Instances(planned(laid(BOTH)).request, lambda _: answers.pop(0))  # type: ignore[arg-type]
    assert instances.count("job") is None
    assert instances.count("job") == 4
    processes = instances.processes("job")
    assert [process.rank for process in processes] == list(range(16))
    assert (processes[5].role, processes[5].replica) == ("workers", 0)
    (line,), kept = instances.report("job", {})
    assert isinstance(line, LogEntry)
    assert line.text == "SageMaker has taken 4 x ml.g5.12xlarge: choice 2 of 2"
    assert instances.report("job", kept) == ([], kept)


def test_a_run_has_the_processes_of_what_was_taken_unless_one_has_spoken(tmp_path: Path) -> None:
    Status(State.STARTING).write(tmp_path)
    run = CarriedRun(tmp_path)
    one, two, four = (tuple(processes_of(laid(str(n)), 1)) for n in (1, 2, 4))
    run.take(one)
    run.rename(())
    assert Status.read(tmp_path).processes == one
    run.rename(two)
    assert Status.read(tmp_path).processes == two
    assert CarriedRun(tmp_path).journal.labels == ["rank 0", "rank 1"]
    run.keep(replace(run.journal, log_size=1))
    run.rename(four)
    assert Status.read(tmp_path).processes == two


def test_without_a_choice_nobody_is_asked() -> None:
    def ask(job: str) -> None:
        raise AssertionError(job)

    groups = planned(laid("2*ml.p3.2xlarge", primary="ml.c5.xlarge")).request
    instances = Instances(groups, ask)  # type: ignore[arg-type]
    assert instances.count("job") == 3
    assert instances.processes("job") == ()
    assert instances.report("job", {}) == ([], {})


ASKED: dict[str, Any] = {
    "InstancePreferences": [{"InstanceType": "ml.p4d.24xlarge"}, {"InstanceType": "ml.m5.large"}],
    "InstanceCount": 2,
}


def test_the_first_with_capacity_is_allocated() -> None:
    request = {"ResourceConfig": {**ASKED, "VolumeSizeInGB": 30}}
    second = {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 30}
    assert with_available_instances(request)["ResourceConfig"]["InstanceType"] == "ml.p4d.24xlarge"
    assert with_available_instances(request, ["ml.p4d.24xlarge"])["ResourceConfig"] == second
    with pytest.raises(JobFailed, match="CapacityError"):
        with_available_instances(request, ["ml.p4d.24xlarge", "ml.m5.large"])
    one = {"ResourceConfig": second}
    assert with_available_instances(one, ["ml.p4d.24xlarge"]) is one
    with pytest.raises(JobFailed, match="CapacityError"):
        with_available_instances(one, ["ml.m5.large"])


@pytest.mark.parametrize(
    ("resources", "more"),
    [
        ({"InstanceType": "ml.m5.large"}, {}),
        ({"InstanceCount": None}, {}),
        ({}, {"EnableManagedSpotTraining": True}),
        ({"InstancePreferences": ASKED["InstancePreferences"][:1] * 2}, {}),
        ({"InstancePreferences": [{"InstanceType": "ml.m5.large", "InstanceCount": 1}]}, {}),
    ],
)
def test_the_stand_in_refuses_what_the_service_does(
    resources: dict[str, Any], more: dict[str, Any]
) -> None:
    check_choices({"ResourceConfig": ASKED})
    with pytest.raises(ApiError):
        check_choices({"ResourceConfig": {**ASKED, **resources}, **more})


def test_faults_name_types_without_capacity() -> None:
    read = Faults.parse("full=ml.p4d.24xlarge,full=ml.g5.xlarge", SAGEMAKER)
    assert read.full == ("ml.p4d.24xlarge", "ml.g5.xlarge")
    for text, syntax in (("full=p4d", SAGEMAKER), ("full=ml.p4d.24xlarge", VERTEX)):
        with pytest.raises(OptionError, match="expected"):
            Faults.parse(text, syntax)


TELLS = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"],
      "on", os.environ["SM_CURRENT_INSTANCE_TYPE"])
world = int(os.environ["WORLD_SIZE"])
"""


@pytest.mark.usefixtures("engine")
def test_the_second_choice_is_taken_where_the_first_has_no_capacity(base: str) -> None:
    asked: dict[str, Any] = {
        "on": "sagemaker", "base": base, "wait": True, "result": "world", "launcher": "torchrun",
        "workers": "ml.g5.12xlarge|2*ml.g5.2xlarge", "check_machines": True,
    }  # fmt: skip
    run = submit(TELLS, rehearse="full=ml.g5.12xlarge", **asked)
    assert run.results["world"] == 2
    assert [process.rank for process in run.status.processes][:3] == [0, 1, None]
    assert run.logs(1) == "[rank 1] rank 1 of 2 on ml.g5.2xlarge"
    assert "[service] SageMaker has taken 2 x ml.g5.2xlarge: choice 2 of 2" in run.logs()
    assert "a rehearsal has no health check" in run.logs()
    assert any(step.phase == "running on 2*ml.g5.2xlarge" for step in run.status.trail)
