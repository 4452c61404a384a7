"""Nothing is lost in silence: each key of each form is read or named, each field said or named."""

from __future__ import annotations

import copy
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import documents
import pytest
import yaml
from botocore.session import get_session
from hypothesis import given
from layout_strategies import examples, whole_layouts

from distrain_nb.errors import OptionError
from distrain_nb.findings import Severity
from distrain_nb.layout import OPTIONS, PLACES, Layout, Role
from distrain_nb.layout.catalog import current
from distrain_nb.layout.formats import all_exports, exports_of, left_out, read_any
from distrain_nb.places.sagemaker.forms.hyperparameters import hyperparameters
from distrain_nb.places.sagemaker.forms.request import distributions

if TYPE_CHECKING:
    from collections.abc import Iterator

# A value of each kind that a key may take. What only looks like a placeholder is none.
VALUES: tuple[Any, ...] = ("other", "OTHER", "$OTHER", 7, {"key": "other"}, ["other"], True)


def is_told(key: str, text: str, before: str) -> bool:
    """Whether a key that was added to a text changes what was read, is named, or is refused."""
    try:
        found = read_any(text)
    except OptionError:
        return True
    named = any(key in path for path in found.left_out)
    plain = read_any(before)
    return named or (found.layout, found.script) != (plain.layout, plain.script)


def with_key(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return changed


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


REQUEST = {
    "HyperParameters": {},
    "AlgorithmSpecification": {"TrainingImage": "image:1"},
    "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 2},
    "StoppingCondition": {},
    "CheckpointConfig": {},
    "OutputDataConfig": {},
}
JOB = {
    "workerPoolSpecs": [
        {"machineSpec": {"machineType": "n1-standard-4"}, "diskSpec": {}, "containerSpec": {}}
    ],
    "scheduling": {},
}


def keys_of_requests() -> Iterator[tuple[str | int, ...]]:
    """Those that AWS's own client knows of."""
    model = get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    for name, member in shape.members.items():
        yield (name,)
        if name in REQUEST and member.type_name == "structure":
            yield from ((name, inner) for inner in member.members)
    yield ("HyperParameters", "epochs")


def keys_of_jobs() -> Iterator[tuple[str | int, ...]]:
    """Those that Google's own client knows of."""
    from google.cloud.aiplatform_v1 import types

    pool: tuple[str | int, ...] = ("workerPoolSpecs", 0)
    for kind, above in (
        (types.CustomJobSpec, ()),
        (types.Scheduling, ("scheduling",)),
        (types.WorkerPoolSpec, pool),
        (types.MachineSpec, (*pool, "machineSpec")),
        (types.DiskSpec, (*pool, "diskSpec")),
        (types.ContainerSpec, (*pool, "containerSpec")),
    ):
        yield from ((*above, camel(name)) for name in kind.meta.fields)


def test_every_key_of_a_training_job_is_read_or_named() -> None:
    for path in keys_of_requests():
        for value in VALUES:
            text = json.dumps(with_key(REQUEST, path, value))
            assert is_told(str(path[-1]), text, json.dumps(REQUEST)), (path, value)


def test_what_is_the_programs_own_is_named_whatever_word_it_is() -> None:
    text = json.dumps({**REQUEST, "HyperParameters": {"optimizer": "SGD", "name": "JOB_NAME"}})
    assert read_any(text).left_out == ("HyperParameters.optimizer", "HyperParameters.name")


def test_every_key_of_a_custom_job_is_read_or_named() -> None:
    for path in keys_of_jobs():
        for value in VALUES:
            text = json.dumps(with_key(JOB, path, value))
            assert is_told(str(path[-1]), text, json.dumps(JOB)), (path, value)


TRAINING_INPUT = (
    *("scaleTier", "region", "jobDir", "args", "packageUris", "pythonModule", "runtimeVersion"),
    *("pythonVersion", "hyperparameters", "scheduling", "network", "serviceAccount"),
    *("encryptionConfig", "useChiefInTfConfig", "enableWebAccess", "masterCount"),
    *(f"{role}{part}" for role in ("master", "worker", "parameterServer", "evaluator")
      for part in ("Type", "Config", "Count")),
)  # fmt: skip


@pytest.mark.parametrize("key", TRAINING_INPUT)
def test_every_key_of_config_yaml_is_read_or_named(key: str) -> None:
    config = {"trainingInput": {"masterType": "n1-standard-4"}}
    for value in VALUES:
        text = yaml.safe_dump(with_key(config, ("trainingInput", key), value))
        assert is_told(key, text, yaml.safe_dump(config)), value


ESTIMATOR = (
    *("entry_point", "source_dir", "role", "hyperparameters", "base_job_name", "model_dir"),
    *("py_version", "framework_version", "image_uri", "distribution", "dependencies", "tags"),
    *("subnets", "security_group_ids", "encrypt_inter_container_traffic", "environment"),
    *("use_spot_instances", "max_run", "max_wait", "checkpoint_s3_uri", "checkpoint_local_path"),
    *("volume_size", "volume_kms_key", "output_path", "output_kms_key", "code_location"),
    *("keep_alive_period_in_seconds", "metric_definitions", "enable_network_isolation"),
    *("input_mode", "git_config", "debugger_hook_config", "max_retry_attempts"),
    *("transformers_version", "pytorch_version", "compiler_config", "sagemaker_session"),
)
TRAINER = (
    *("training_mode", "sagemaker_session", "role", "base_job_name", "source_code"),
    *("distributed", "networking", "stopping_condition", "training_image"),
    *("training_image_config", "algorithm_name", "output_data_config", "input_data_config"),
    *("checkpoint_config", "training_input_mode", "environment", "hyperparameters", "tags"),
    *("local_container_root", "model_package_config"),
)
VALUES_IN_PYTHON = (
    *("'other'", "'OTHER'", "OTHER", "7", "{'key': 'other'}", "['other']", "True", "made()"),
    *("Made(key='other')", "Made(1)", "{'key': args.other}", "[args.other]", "{**more}"),
    *("args.other", "f'{x}'", "{'key': 'OTHER'}"),
)


@pytest.mark.parametrize("key", ESTIMATOR)
def test_every_argument_of_an_estimator_is_read_or_named(key: str) -> None:
    for script in ("", ", entry_point='train.py'" * (key != "entry_point")):
        before = f"PyTorch(instance_type='ml.m5.xlarge', instance_count=2{script}{{}})"
        for value in VALUES_IN_PYTHON:
            assert is_told(key, before.format(f", {key}={value}"), before.format("")), value


@pytest.mark.parametrize("key", TRAINER)
def test_every_argument_of_a_trainer_is_read_or_named(key: str) -> None:
    before = "ModelTrainer(compute=Compute(instance_type='ml.m5.xlarge', instance_count=2){})"
    for value in VALUES_IN_PYTHON:
        assert is_told(key, before.format(f", {key}={value}"), before.format("")), value


@pytest.mark.parametrize("key", ["instance_type", "instance_count", "volume_size"])
def test_a_figure_that_only_running_tells_is_named(key: str) -> None:
    given = {"instance_type": "'ml.m5.xlarge'", "instance_count": "2", key: "args.other"}
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    assert key in read_any(f"PyTorch({arguments})").left_out


def test_other_calls_and_arguments_without_names_are_named() -> None:
    text = (
        "MXNet('train.py', instance_type='ml.m5.xlarge', instance_count=2, **more)\n"
        "TensorFlow(instance_type='ml.p3.2xlarge', instance_count=4)\n"
    )
    assert read_any(text).left_out == ("'train.py'", "**more", "TensorFlow(…) in line 2")


def test_a_trainer_is_read() -> None:
    text = """
compute = Compute(instance_type="ml.p4d.24xlarge", instance_count=2, volume_size_in_gb=100,
                  enable_managed_spot_training=True, keep_alive_period_in_seconds=60)
trainer = ModelTrainer(
    training_image="image:1", compute=compute, role=get_execution_role(),
    source_code=SourceCode(source_dir="code", entry_script="train.py"),
    distributed=MPI(process_count_per_node=8, mpi_additional_options=["-x", "A=b"]),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=3600),
    checkpoint_config=CheckpointConfig(s3_uri="s3://b/c", local_path="/opt/other"),
)
"""
    found = read_any(text)
    assert found.layout == Layout.of(
        "sagemaker", workers="2*ml.p4d.24xlarge,disk=100", image="image:1", launcher="mpi",
        ranks_per_replica=8, mpi_options="-x A=b", spot=True, timeout=3600, checkpoint="s3://b/c",
    )  # fmt: skip
    assert set(found.left_out) == {
        *("role", "compute.keep_alive_period_in_seconds"),
        "checkpoint_config.local_path",
    }
    assert found.script == ("code/train.py",)
    torchrun = text.replace("MPI(", "Torchrun(").replace("mpi_additional_options", "smp")
    found = read_any(torchrun)
    assert found.layout.launcher == "torchrun" and "distributed.smp" in found.left_out


def test_a_trainer_s_preferences_are_alternatives() -> None:
    text = """
trainer = ModelTrainer(
    training_image="image:1",
    compute=Compute(
        instance_preferences=[
            InstancePreference(instance_type="ml.p5.48xlarge", instance_count=2,
                               training_plan_arns=["arn:aws:sagemaker:…"]),
            InstancePreference(instance_type="ml.p4d.24xlarge", instance_count=4),
        ],
    ),
)
"""
    found = read_any(text)
    assert str(found.layout.workers) == "2*ml.p5.48xlarge|4*ml.p4d.24xlarge"
    assert found.left_out == ("compute.instance_preferences[0].training_plan_arns",)


def test_preferences_of_a_request_are_alternatives() -> None:
    plans = ["arn:aws:sagemaker:us-west-2:123456789012:training-plan/mine"]
    names = [{"InstanceType": "ml.p5.48xlarge", "TrainingPlanArns": plans},
             {"InstanceType": "ml.p4d.24xlarge"}]  # fmt: skip
    machines: dict[str, Any] = {"InstancePreferences": names, "InstanceCount": 2}
    found = read_any(json.dumps({**REQUEST, "ResourceConfig": machines}))
    assert str(found.layout.workers) == "2*ml.p5.48xlarge|ml.p4d.24xlarge"
    assert found.left_out == ("ResourceConfig.InstancePreferences[0].TrainingPlanArns",)
    for wrong in ({"InstanceCount": None}, {"InstanceType": "ml.m5.large"}, {
        "InstancePreferences": [{**names[0], "InstanceCount": 1}, names[1]]
    }):  # fmt: skip
        kept = {name: it for name, it in {**machines, **wrong}.items() if it is not None}
        with pytest.raises(OptionError, match="InstancePreferences"):
            read_any(json.dumps({**REQUEST, "ResourceConfig": kept}))


@pytest.mark.parametrize(
    "workers",
    ["2*ml.p5.48xlarge|ml.p4d.24xlarge", "2*ml.p5.48xlarge|4*ml.p4d.24xlarge|2*ml.g5.48xlarge"],
)
def test_alternatives_are_in_each_form_or_named(workers: str) -> None:
    layout = Layout.of("sagemaker", workers=workers)
    for form in exports_of("sagemaker"):
        has_them = form.name in ("sagemaker-json", "sagemaker-trainer", "options", "yaml")
        lost = () if has_them else ("workers.alternatives",)
        assert form.left_out(layout) == lost, form.name
        again = read_any(form.text(layout)).layout
        assert (again == layout) is not bool(lost), form.name


def test_the_documents_estimators_run_their_scripts() -> None:
    for text, name in (
        (documents.ESTIMATOR_SERVERS, "train_ps.py"),
        (documents.ESTIMATOR_HOROVOD, "train_hvd.py"),
    ):
        found = read_any(text)
        assert found.script == (f"code/{name}", "--epochs", "60", "--batch-size", "256")
        assert "role" in found.left_out


MODULE = "--module-name trainer.task --package-path ./trainer/"


@pytest.mark.parametrize(
    ("text", "script", "left"),
    [
        (f"SUBMIT {MODULE} -- --lr=0.1 data", "-m trainer.task --lr=0.1 data", ()),
        (f"SUBMIT --job-dir gs://b/j {MODULE} -- --lr=0.1",
         "-m trainer.task --lr=0.1 --job-dir gs://b/j", ()),
        ("SUBMIT --module-name trainer.task -- --lr=0.1", "", ("--module-name", "--lr=0.1")),
        ("VERTEX,local-package-path=.,script=a/task.py --args=--lr=1,x", "a/task.py --lr=1 x", ()),
        ("VERTEX,python-module=trainer.task", "-m trainer.task", ()),
        ("VERTEX --args=--lr=1", "", ("--args=--lr=1",)),
        ("PyTorch(instance_count=1, entry_point='t.py', source_dir='s3://b/c')", "",
         ("entry_point", "source_dir")),
        ("PyTorch(instance_count=1, entry_point='t.py', hyperparameters={'a': 'x y', 'b': [1]})",
         "t.py --a 'x y' --b '[1]'", ()),
    ],
)  # fmt: skip
def test_scripts_with_their_arguments_are_read(
    text: str, script: str, left: tuple[str, ...]
) -> None:
    found = read_any(text.replace("SUBMIT", SUBMIT).replace("VERTEX", VERTEX))
    assert shlex.join(found.script) == script
    assert set(left) <= set(found.left_out)
    assert left or not found.left_out


VERTEX = "gcloud ai custom-jobs create --worker-pool-spec=machine-type=n1-standard-4"
SUBMIT = "gcloud ai-platform jobs submit training $JOB_NAME --master-machine-type n1-standard-4"


@pytest.mark.parametrize("command", [VERTEX, SUBMIT])
@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("--package-path trainer", "--package-path"),
        ("--module-name trainer.task", "--module-name"),
        ("--job-dir=gs://b/job", "--job-dir"),
        ("--display-name=mine", "--display-name"),
        ("--display-name=BERT", "--display-name"),
        ("--region=$NEAREST", "--region"),
        ("--network $NETWORK", "--network"),
        ("--stream-logs --region us-central1", "--stream-logs"),
        ("--config job.yaml", "--config job.yaml"),
        ("--master-tpu-tf-version 2.8", "--master-tpu-tf-version"),
        ("-- --epochs=3 data", "--epochs=3"),
        ("-- --epochs=3 data", "data"),
        ("-- --loss MSE JOB_NAME", "MSE"),
        ("-- --loss MSE JOB_NAME", "JOB_NAME"),
        ("my_job", "my_job"),
        ("MY_JOB", "MY_JOB"),
    ],
)
def test_every_flag_and_word_of_a_command_is_read_or_named(
    command: str, more: str, named: str
) -> None:
    found = read_any(f"{command} {more}")
    assert named in found.left_out
    if "us-central1" in more:
        assert found.layout.region == "us-central1"


def test_a_file_that_is_not_here_is_asked_for() -> None:
    (found,) = left_out(read_any(f"{SUBMIT} --config job.yaml"))
    assert found.severity is Severity.INFO
    assert found.message == "the file job.yaml is not here: paste what is in it, too."


FILE = "workerPoolSpecs:\n- machineSpec:\n    machineType: n1-standard-8\n  replicaCount: 1\n"
USING = "gcloud ai custom-jobs create --region=europe-west4 \\\n  --config=job.yaml\n"
WHOLE = Layout.of("vertex", primary="n1-standard-8", region="europe-west4")


@pytest.mark.parametrize(
    "text",
    [
        f"{FILE}\n{USING}",
        f"{USING}\n{FILE}",
        f"# job.yaml\n{FILE}# then\n!gcloud config set project p\n!{USING}",
        f"%%writefile job.yaml\n{FILE}\n{USING}",
        f"```yaml\n{FILE}```\n{USING}",
        f"job.yaml:\n{FILE}\n$ {USING}",
    ],
)
def test_a_command_and_its_file_are_one_text_in_either_order(text: str) -> None:
    found = read_any(text)
    assert (found.layout, found.left_out) == (WHOLE, ())


def test_a_file_in_the_working_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    Path("job.yaml").write_text(FILE)
    assert read_any(USING).layout == WHOLE
    curl = "curl --data=@job.yaml https://h/v1/projects/p/locations/europe-west4/customJobs"
    assert read_any(curl).layout == WHOLE
    Path("job.yaml").rename("../job.yaml")
    os.mkfifo("job.yaml")
    for name in ("job.yaml", "../job.yaml", str(tmp_path / "job.yaml"), "link.yaml"):
        Path("link.yaml").unlink(missing_ok=True)
        Path("link.yaml").symlink_to("../job.yaml")
        found = read_any(USING.replace("job.yaml", name))
        assert f"--config {name}" in found.left_out


SAME = [form for form in all_exports() if form.name != "successor"]  # which is another layout


@pytest.mark.parametrize("form", SAME, ids=lambda form: form.name)
def test_every_field_of_a_layout_is_said_or_named(form: Any) -> None:
    @examples
    @given(whole_layouts(tuple(place for place in (*PLACES, "slurm") if form in exports_of(place))))
    def look(layout: Layout) -> None:
        lost = form.left_out(layout)
        again = read_any(form.text(layout)).layout
        for option in OPTIONS:
            name = option.field
            before, after = getattr(layout, name), getattr(again, name)
            if name in (*map(str, Role), "on", "image") or before == after:
                continue  # pools and their images have a test of their own
            if name == "distribution" and before not in current().distributions:
                continue  # an error of its own
            same = (name, before) in (("scheduling", "STANDARD"), ("tier", "CUSTOM"))
            assert name in lost or same or _starts_alike(layout, again), (name, before, after)

    look()


def _starts_alike(one: Layout, other: Layout) -> bool:
    """Whether the containers are told the same, be it a launcher or the distribution's name."""
    told = [hyperparameters(distributions(each), "") for each in (one, other)]
    return one.on == "sagemaker" and told[0] == told[1] != {}


def test_what_a_request_can_not_say_is_named() -> None:
    layout = Layout.of(
        "sagemaker", workers="2*ml.p4d.24xlarge", framework="pytorch-2.4", launcher="mpi",
        ranks_per_replica=8, mpi_options="-x A=b", region="us-east-1",
    )  # fmt: skip
    forms = {form.name: form for form in all_exports()}
    assert forms["sagemaker-json"].left_out(layout) == ("region", "framework")
    assert forms["sagemaker-python"].left_out(layout) == ("region",)
    assert forms["options"].left_out(layout) == forms["yaml"].left_out(layout) == ()
    near = Layout.of(
        "vertex", primary="n1-standard-4", reducers="n1-highcpu-16", region="europe-west4"
    )
    assert forms["vertex-json"].left_out(near) == ("region",)
    assert forms["vertex-gcloud"].left_out(near) == forms["options"].left_out(near) == ()
    told = json.loads(forms["sagemaker-json"].text(layout))["HyperParameters"]
    assert told == {
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "8",
        "sagemaker_mpi_custom_mpi_options": '"-x A=b"',
    }
    assert read_any(forms["sagemaker-json"].text(layout)).layout.launcher == "mpi"
    text = forms["sagemaker-python"].text(layout)
    assert "entry_point='ENTRY_POINT'" in text and "role='ROLE_ARN'" in text
