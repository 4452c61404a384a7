"""The request: what the API's own types take, and what the documents give."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import MessageToDict, ParseDict

from distrain_nb.errors import OptionError
from distrain_nb.findings import Severity
from distrain_nb.layout import Layout, Role
from distrain_nb.places.vertex.plan import VertexPlan, VertexSpec
from distrain_nb.places.vertex.request import RUN, training_pipeline
from distrain_nb.places.vertex.service import VertexService
from distrain_nb.places.vertex.stand_in.replicas import left_out, members
from distrain_nb.worker.supervisor.retries import RunAttempt
from tests.vertex.jobs import planned

EVERYTHING: dict[str, Any] = {
    "label": ("team=vision", "cost-center=12"),
    "env": ("NCCL_DEBUG=INFO",),
    "nfs": ("10.0.0.2:/share:data",),
    "lustre": ("10.0.0.3:lustrefs:projects/p/locations/l/instances/i:fast",),
    "reservation": "projects/p/zones/z/reservations/r",
    "persistent_resource": "pool-1",
    "web_access": True,
    "restart": True,
    "tensorboard": "123",
    "kms_key": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "network": "projects/1/global/networks/default",
}
LAYOUTS = {
    "one machine": Layout.of("vertex", primary="n1-standard-4", region="us-central1"),
    "with a disk": Layout.of(
        "vertex", primary="n1-standard-8+2*T4,disk=pd-ssd:200", workers="3*n1-standard-8+2*T4",
        scheduling="SPOT", timeout=3600, max_wait=60, region="europe-west4",
    ),
    "servers and an evaluator": Layout.of(
        "vertex", primary="n1-standard-4", servers="2*n1-highmem-8", evaluators="n1-standard-4",
        region="us-central1",
    ),
    "a TPU": Layout.of("vertex", primary="ct5lp-hightpu-4t,topology=2x2", region="us-west1"),
}  # fmt: skip


def round_trip(plan: VertexPlan) -> dict[str, Any]:
    """The request after it was the API's own message."""
    from google.cloud.aiplatform_v1.types import CustomJob

    message = CustomJob.from_json(json.dumps(plan.request))
    found: dict[str, Any] = MessageToDict(CustomJob.pb(message))
    return found


def as_sent(value: Any) -> Any:
    """With 64-bit numbers as text, as JSON has them on the way back."""
    if isinstance(value, dict):
        texts = ("replicaCount",)
        return {k: str(v) if k in texts else as_sent(v) for k, v in value.items()}
    return [as_sent(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("options", [{}, EVERYTHING, {"python_package": True}])
def test_the_api_takes_it_and_loses_nothing(layout: Layout, options: dict[str, Any]) -> None:
    plan = planned(layout, name="My run", results=("loss",), options=options)
    assert round_trip(plan) == as_sent(plan.request)


def test_every_option_is_where_the_api_has_it() -> None:
    plan = planned(LAYOUTS["with a disk"], options=EVERYTHING)
    assert not [f for f in plan.findings if f.code.startswith("vertex.")]
    spec, parent = plan.request["jobSpec"], "projects/my-project/locations/europe-west4"
    assert plan.request["labels"] == {"team": "vision", "cost-center": "12", "distrain_run": RUN}
    assert spec["scheduling"] == {
        "strategy": "SPOT",
        "timeout": "3600s",
        "maxWaitDuration": "60s",
        "restartJobOnWorkerRestart": True,
    }
    assert spec["persistentResourceId"] == "pool-1"
    assert spec["enableWebAccess"] is True
    assert spec["tensorboard"] == f"{parent}/tensorboards/123"
    assert plan.request["encryptionSpec"] == {"kmsKeyName": EVERYTHING["kms_key"]}
    assert f"--kms-key={EVERYTHING['kms_key']}" in str(plan)
    assert spec["network"] == "projects/1/global/networks/default"
    assert spec["serviceAccount"] == EVERYTHING["service_account"]
    assert spec["baseOutputDirectory"] == {"outputUriPrefix": f"gs://my-bucket/distrain/{RUN}"}
    for pool in spec["workerPoolSpecs"]:
        assert pool["nfsMounts"] == [{"server": "10.0.0.2", "path": "/share", "mountPoint": "data"}]
        assert pool["lustreMounts"][0]["filesystem"] == "lustrefs"
        affinity = pool["machineSpec"]["reservationAffinity"]
        assert affinity["values"] == ["projects/p/zones/z/reservations/r"]
        assert {"name": "NCCL_DEBUG", "value": "INFO"} in pool["containerSpec"]["env"]
    assert spec["workerPoolSpecs"][0]["diskSpec"] == {
        "bootDiskType": "pd-ssd",
        "bootDiskSizeGb": 200,
    }


@pytest.mark.parametrize(
    ("experiment", "sent"),
    [
        ("", {}),
        ("trials", {"experiment": "trials"}),
        ("trials/third", {"experiment": "trials", "experimentRun": "trials-third"}),
    ],
)
def test_an_experiment_and_its_run_are_contexts(experiment: str, sent: dict[str, str]) -> None:
    account = {"service_account": EVERYTHING["service_account"]}
    plan = planned(LAYOUTS["one machine"], experiment=experiment, options=account)
    assert not plan.findings
    contexts = "projects/my-project/locations/us-central1/metadataStores/default/contexts"
    spec = plan.request["jobSpec"]
    found = {name: spec[name] for name in ("experiment", "experimentRun") if name in spec}
    assert found == {name: f"{contexts}/{value}" for name, value in sent.items()}
    assert round_trip(plan) == as_sent(plan.request)


@pytest.mark.parametrize(
    ("experiment", "options", "code"),
    [
        ("trials", {}, "vertex.no-service-account"),
        ("trials", {"service_account": "a@b", "tensorboard": "1"}, "vertex.two-trackers"),
        ("My trials", {"service_account": "a@b"}, "vertex.experiment-name"),
        ("trials/a/b", {"service_account": "a@b"}, "vertex.experiment-name"),
        ("abc", {"service_account": "a@b"}, "vertex.experiment-name"),
        (f"abcd/{'d' * 124}", {"service_account": "a@b"}, "vertex.experiment-name"),
    ],
)
def test_experiments_that_can_t_be(experiment: str, options: dict[str, str], code: str) -> None:
    plan = planned(LAYOUTS["one machine"], experiment=experiment, options=options)
    assert [f.code for f in plan.findings] == [code]


@pytest.mark.parametrize(
    ("options", "right", "code"),
    [
        ({"name": "é" * 129}, {"name": "é" * 128}, "vertex.name"),
        ({"persistent_resource": "a-"}, {"persistent_resource": "a" * 63},
         "vertex.persistent-resource"),
        ({"env": [f"A{n}=1" for n in range(101)]}, {"env": [f"A{n}=1" for n in range(90)]},
         "vertex.env-count"),
    ],
)  # fmt: skip
def test_sizes_and_forms_are_those_of_the_reference(
    options: dict[str, Any], right: dict[str, Any], code: str
) -> None:
    def found(given: dict[str, Any]) -> list[str]:
        name = {"name": given["name"]} if "name" in given else {}
        more = {key: value for key, value in given.items() if key != "name"}
        return [f.code for f in planned(LAYOUTS["one machine"], options=more, **name).findings]

    assert found(options) == [code]
    assert found(right) == []


def test_unused_positions_are_empty_pools() -> None:
    pools = planned(LAYOUTS["servers and an evaluator"]).request["jobSpec"]["workerPoolSpecs"]
    assert [bool(pool) for pool in pools] == [True, False, True, True]


def test_the_document_s_reduction_server_job() -> None:
    """The command of the document, field by field; what a program needs is added to its pools."""
    layout = Layout.of(
        "vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100",
        reducers="16*n1-highcpu-16", region="us-central1",
    )  # fmt: skip
    pools = planned(layout).request["jobSpec"]["workerPoolSpecs"]
    v100 = {
        "machineType": "n1-highmem-96",
        "acceleratorType": "NVIDIA_TESLA_V100",
        "acceleratorCount": 8,
    }
    assert [pool["machineSpec"] for pool in pools[:2]] == [v100, v100]
    assert [pool["replicaCount"] for pool in pools] == [1, 4, 16]
    assert pools[2] == {
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "replicaCount": 16,
        "containerSpec": {
            "imageUri": "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
        },
    }


def test_reducers_are_taken_from_the_nearest_multi_region() -> None:
    layout = Layout.of(
        "vertex", primary="n1-highmem-96+8*V100", workers="n1-highmem-96+8*V100",
        reducers="auto", region="asia-east1",
    )  # fmt: skip
    plan = planned(layout)
    image = plan.request["jobSpec"]["workerPoolSpecs"][2]["containerSpec"]["imageUri"]
    assert image.startswith("asia-docker.pkg.dev/")
    assert plan.base.startswith("asia-docker.pkg.dev/vertex-ai/training/pytorch-gpu")
    assert not [f for f in plan.findings if f.code == "vertex.reduction-base"]
    other = planned(layout, options={"base": "mine:1"})
    assert [f.code for f in other.findings] == ["vertex.reduction-base"]


@pytest.mark.parametrize(
    ("framework", "code", "there"),
    [
        ("pytorch", "import torch\n", True),
        ("tensorflow", "import tensorflow\n", False),
        ("tensorflow", "import keras\n", False),
    ],
)
def test_a_rehearsal_has_reducers_where_torch_uses_them(
    framework: str, code: str, there: bool
) -> None:
    from google.cloud.aiplatform_v1.types import CustomJob

    layout = Layout.of(
        "vertex", primary="n1-standard-16+2*T4", workers="n1-standard-16+2*T4",
        reducers="2*n1-highcpu-16", framework=framework, region="us-central1",
    )  # fmt: skip
    plan = planned(layout, code=code)
    assert not [f for f in plan.findings if f.severity is Severity.ERROR]
    spec = CustomJob.from_json(json.dumps(plan.request)).job_spec
    assert len(spec.worker_pool_specs) == 3
    found = [member.role for member in members("a/job", spec)]
    assert found == [Role.PRIMARY, Role.WORKERS, *[Role.REDUCERS] * 2 * there]
    assert left_out(spec.worker_pool_specs[2], spec) is not there


def test_how_machines_are_reached_and_lost_is_where_the_api_has_it() -> None:
    options = {"no_retries": True, "network_attachment": "attachments/a"}
    plan = planned(LAYOUTS["with a disk"], options=options)
    spec = plan.request["jobSpec"]
    assert spec["scheduling"]["disableRetries"] is True
    assert spec["pscInterfaceConfig"] == {"networkAttachment": "attachments/a"}
    assert "reservedIpRanges" not in spec
    assert round_trip(plan) == as_sent(plan.request)
    ranges = planned(options={"network": "networks/n", "ip_range": ("one", "two")})
    assert ranges.request["jobSpec"]["reservedIpRanges"] == ["one", "two"]
    assert round_trip(ranges) == as_sent(ranges.request)
    assert not [f for each in (plan, ranges) for f in each.findings]


def test_as_a_training_pipeline() -> None:
    from google.cloud.aiplatform_v1.types import CustomJobSpec, TrainingPipeline

    plan = planned(LAYOUTS["with a disk"], options={"pipeline": True})
    sent = training_pipeline(plan.request)
    message = TrainingPipeline.from_json(json.dumps(sent))
    inputs = MessageToDict(TrainingPipeline.pb(message).training_task_inputs)
    spec = CustomJobSpec.pb(CustomJobSpec())
    ParseDict(inputs, spec)
    assert MessageToDict(spec) == as_sent(plan.request["jobSpec"])
    assert plan.spec().request["trainingTaskDefinition"].endswith("custom_task_1.0.0.yaml")


def test_dry_run_is_yaml_that_gcloud_takes() -> None:
    from google.cloud.aiplatform_v1.types import CustomJobSpec

    plan = planned(LAYOUTS["with a disk"], name="My run")
    text = str(plan)
    spec = CustomJobSpec.pb(CustomJobSpec())
    ParseDict(yaml.safe_load(text), spec)
    image = f"europe-west4-docker.pkg.dev/my-project/distrain/my-run:{RUN}"
    assert spec.worker_pool_specs[1].container_spec.image_uri == image
    assert "gcloud ai custom-jobs create --config=FILE --project=my-project" in text
    assert str(planned(LAYOUTS["with a disk"], name="My run")) == text


def test_every_submission_is_a_run_of_its_own() -> None:
    plan = planned(name="My run")
    first, again, second = plan.spec(), plan.spec(), planned(name="My run").spec()
    assert first.run == again.run != second.run
    assert VertexSpec.of(json.loads(json.dumps(asdict(first)))) == first
    assert RUN not in json.dumps(first.request)
    assert first.request["labels"]["distrain_run"] == first.run


def test_links_lead_to_the_console_unless_it_is_a_rehearsal() -> None:
    spec = planned(LAYOUTS["one machine"]).spec()
    job = "projects/1/locations/us-central1/customJobs/7"
    links = VertexService(spec, {}).links(job)
    assert links["job"].endswith("locations/us-central1/training/7?project=my-project")
    assert links["model"].endswith(f"storage/browser/my-bucket/distrain/{spec.run}/model")
    assert VertexService(spec, {"logging": "127.0.0.1:1"}).links(job) == {}


def test_an_own_container_gets_the_code_from_the_bucket() -> None:
    layout = Layout.of("vertex", primary="n1-standard-4", image="eu.gcr.io/p/mine:1")
    plan = planned(layout, options={})
    container = plan.request["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    assert not plan.builds
    assert container["imageUri"] == "eu.gcr.io/p/mine:1"
    assert container["command"][:2] == ["sh", "-c"]
    assert f"/gcs/my-bucket/distrain/{RUN}/code/worker" in container["command"][2]


def test_a_python_package_needs_no_image() -> None:
    plan = planned(options={"python_package": True})
    package = plan.request["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]
    assert package["executorImageUri"] == plan.base
    assert package["executorImageUri"].startswith("europe-docker.pkg.dev/vertex-ai/training/")
    assert package["packageUris"][0].startswith(f"gs://my-bucket/distrain/{RUN}/package/")
    assert not plan.builds


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("label", ("Team=1",), "lower case"),
        ("env", ("1A=2",), "NAME=VALUE"),
        ("env", ("TF_CONFIG={}",), "Vertex AI sets"),
        ("nfs", ("10.0.0.2:/share",), "SERVER:PATH:MOUNT"),
        ("lustre", ("10.0.0.2:data",), "ADDRESS:FILESYSTEM:VOLUME:MOUNT"),
    ],
)
def test_what_can_t_be_read_is_named(option: str, value: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        planned(options={option: value})


@pytest.mark.parametrize(
    ("layout", "options", "code"),
    [
        ({"launcher": "mpi", "workers": "2*n1-standard-4"}, {}, "vertex.mpirun"),
        ({"launcher": "parameter-server"}, {}, "vertex.launcher"),
        ({}, {"tensorboard": "1"}, "vertex.no-service-account"),
        ({}, {"python_package": True, "base": "mine:1"}, "vertex.no-prebuilt"),
        ({}, {"no_retries": True, "restart": True}, "vertex.retries"),
        ({"retries": 2}, {"restart": True}, "vertex.retries"),
        ({}, {"ip_range": ("range-1",)}, "vertex.ip-range"),
        ({}, {"network": "n", "network_attachment": "a"}, "vertex.two-networks"),
    ],
)
def test_what_can_t_work_is_found(
    layout: dict[str, str], options: dict[str, Any], code: str
) -> None:
    plan = planned(
        Layout.of("vertex", primary="n1-standard-4", region="us-central1", **layout),
        options=options,
    )
    assert [f.code for f in plan.findings] == [code]


def test_mpirun_starts_what_imports_mpi() -> None:
    told = {"name": "DISTRAIN_LAUNCHER", "value": "mpi"}
    more = {"name": "DISTRAIN_MPI_OPTIONS", "value": "--tag-output"}
    for options in ({"code": "from mpi4py import MPI\n"}, {"launcher": "mpi"}):
        code = options.pop("code", "import torch\n")
        layout = Layout.of("vertex", primary="n1-standard-4", region="us-central1",
                           mpi_options="--tag-output", **options)  # fmt: skip
        (pool,) = planned(layout, code=code).request["jobSpec"]["workerPoolSpecs"]
        assert told in pool["containerSpec"]["env"] and more in pool["containerSpec"]["env"]


def test_a_rank_for_each_gpu_of_the_primary() -> None:
    def ranks(code: str, **layout: Any) -> int:
        gpus = Layout.of("vertex", primary="n1-standard-8+4*T4", **layout)
        return planned(gpus, code=code).ranks_per_replica

    assert ranks("import torch\n") == 4
    assert ranks("import torch\n", ranks_per_replica=2) == 2
    assert ranks("x = 1\n") == 1


@pytest.mark.parametrize(
    ("code", "layout", "base"),
    [
        ("import torch\n", {"framework": "pytorch-2.2"}, "training/pytorch-gpu.2-2.py310"),
        ("import torch\n", {"primary": "n1-standard-4"}, "training/pytorch-xla.2-4.py310"),
        ("x = 1\n", {}, "python:3."),
    ],
)  # fmt: skip
def test_the_base_fits_the_program(code: str, layout: dict[str, str], base: str) -> None:
    chosen = Layout.of("vertex", **{"primary": "n1-standard-8+1*T4", **layout})
    assert base in planned(chosen, code=code).base


def assert_attempt(request: Any, pipeline: bool, number: str) -> None:
    for pool in request["trainingTaskInputs" if pipeline else "jobSpec"]["workerPoolSpecs"]:
        told = {item["name"]: item["value"] for item in pool["containerSpec"]["env"]}
        assert (told["DISTRAIN_ATTEMPT"], told["DISTRAIN_RETRIES"]) == (number, "3")
        assert told["TORCHELASTIC_RESTART_COUNT"] == str(int(number) - 1)


@pytest.mark.parametrize("pipeline", [False, True])
def test_another_attempt_is_the_same_job_with_a_label_of_its_own(pipeline: bool) -> None:
    """Its ranks are told which attempt it is; the service starts nothing again by itself."""
    layout = LAYOUTS["with a disk"].edited({"retries": 3, "retry_on": "75,lost"})
    spec = planned(layout, options={"pipeline": pipeline}).spec()
    assert (spec.retries, spec.retried) == (3, ("75", "lost"))
    assert_attempt(spec.request, pipeline, "1")
    request = VertexService(spec, {}).prepare_attempt(spec.request, RunAttempt(2), 3)
    assert request["labels"]["distrain_run"] == f"{spec.run}-2"
    body = request["trainingTaskInputs"] if pipeline else request["jobSpec"]
    assert body["scheduling"]["disableRetries"] is True
    assert_attempt(request, pipeline, "2")
    before = json.dumps(spec.request["jobSpec" if not pipeline else "trainingTaskInputs"])
    assert json.dumps(body["baseOutputDirectory"]) in before
