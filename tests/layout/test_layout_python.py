"""The clouds' SDKs in Python: read in its order without running it, or named with its line."""

from __future__ import annotations

import json
import shlex

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Role
from distrain_nb.layout.formats import read_any

MADE = "est = PyTorch(instance_type={}, instance_count={}, hyperparameters={}, entry_point='t.py')"


def made(kind: str = "'ml.m5.xlarge'", count: str = "2", values: str = "{}") -> str:
    return MADE.format(kind, count, values) + "\n"


STEPS = {
    "an image looked up for the machine": (
        "i = image_uris.retrieve('xgboost', instance_type='ml.p3.2xlarge')\n" + made(), "", ()),
    "a place to serve": (made() + "est.deploy(instance_type='ml.p3.2xlarge', "
                         "initial_instance_count=9)\n", "", ()),
    "a processor before": ("SKLearnProcessor(instance_type='ml.p3.2xlarge', instance_count=9)\n"
                           + made(), "", ()),
    "a tuner": (made() + "HyperparameterTuner(est, 'loss', ranges)\n", "",
                ("HyperparameterTuner(…) in line 2",)),
    "after the call": ("k = 'ml.m5.xlarge'\n" + made("k") + "k = 'ml.p3.2xlarge'\n", "", ()),
    "two targets": ("k, n = 'ml.m5.xlarge', 2\n" + made("k", "n"), "", ()),
    "a sum": ("n = 1\nn += 1\n" + made(count="n"), "", ()),
    "texts": ("s = 'm5'\n" + made("f'ml.{s}' + '.' + 'xlarge'"), "", ()),
    "a condition that is known": ("G = True\nif G:\n    n = 2\n" + made(count="n"), "", ()),
    "an item": ("h = {'a': 1}\nh['b'] = 2\nh.update(c=3)\ndel h['a']\n" + made(values="h"),
                "--b 2 --c 3", ()),
    "an alias": ("h = {}\ng = h\ng['a'] = 1\n" + made(values="{**h, 'b': 2}"), "--a 1 --b 2", ()),
    "set later": (made(values="{'a': 1}") + "est.set_hyperparameters(b=2, a=3)\n",
                  "--a 3 --b 2", ()),
    "an attribute": (made(count="1") + "est.instance_count = 2\n", "", ()),
    "arguments of a mapping": (
        "more = dict(instance_type='ml.m5.xlarge')\n"
        "est = PyTorch(**more, instance_count=2, entry_point='t.py')", "", ()),
    "set below if": (made() + "if x:\n    est.set_hyperparameters(a=1)\n", "",
                     ("hyperparameters.a (line 3)",)),
    "an item below for": ("h = {'a': 1}\nfor x in y:\n    h['b'] = x\n" + made(values="h"), "--a 1",
                          ("hyperparameters.b (line 3)",)),
    "an item after the call": ("h = {'a': 1}\n" + made(values="h") + "h['b'] = 2\n", "--a 1",
                               ("hyperparameters.b (line 3)",)),
    "set after the start": (made() + "est.fit(x)\nest.set_hyperparameters(a=1)\n", "",
                            ("fit(inputs)", "set_hyperparameters (line 3)")),
    "what starts it": (made() + "est.fit({'train': x}, wait=False, logs=None)\nest.fit()\n", "",
                       ("fit(wait)", "fit(inputs)", "fit(…) in line 3")),
    "in a function": ("h = {}\ndef f():\n    h['a'] = 1\nf()\n" + made(values="h"), "",
                      ("hyperparameters.a (line 3)",)),
    "given to a function": ("h = {'a': 1}\nfill(h)\n" + made(values="h"), "",
                            ("hyperparameters.a (line 2)", "hyperparameters.** (line 2)")),
}  # fmt: skip


@pytest.mark.parametrize(("text", "script", "left"), STEPS.values(), ids=STEPS)
def test_python_is_read_in_its_order(text: str, script: str, left: tuple[str, ...]) -> None:
    found = read_any(text)
    assert found.layout == Layout.of("sagemaker", workers="2*ml.m5.xlarge", framework="pytorch")
    assert shlex.join(found.script) == f"t.py {script}".strip()
    assert found.left_out == left


@pytest.mark.parametrize(
    "block",
    ["if x:\n    {}", "for x in y:\n    {}", "while x:\n    {}", "try:\n    {}\nexcept E:\n    a",
     "try:\n    f()\nexcept E:\n    {}", "match x:\n    case 1:\n        {}"],
)  # fmt: skip
def test_what_a_block_may_change_is_named_with_its_line(block: str) -> None:
    for name, change in (("k", "k = 'ml.p3.2xlarge'"), ("n", "n += 1")):
        text = "k, n = 'ml.m5.xlarge', 2\n" + block.format(change) + "\n" + made("k", "n")
        line = 1 + text[: text.index(change)].count("\n")
        argument = {"k": "instance_type", "n": "instance_count"}[name]
        assert read_any(text).left_out == (f"{argument} (line {line})",)


@pytest.mark.parametrize("before", ["%%time\n", "%%capture out\n# x\n", "!cp a b\n", "%time\n",
                                    "x = !ls\n", "%pip install \\\n  x\n", "%time "])  # fmt: skip
def test_commands_of_ipython_are_passed_over(before: str) -> None:
    assert read_any(before + made()) == read_any(made())


COMMANDS_BESIDE = {
    "a sum of texts": "!ls\nif x:\n    raise E(\n        'a %s'\n        % (a, b)\n    )\n",
    "a line that goes on": "!ls\nx = 7 \\\n    % 2\n",
    "an answer over lines": "if x:\n  out = ! gcloud a \\\n    --b \\\n    --c\n",
    "a text": '%pip install x\ntext = """\n!x (\n%y\n"""\n',
    "a command without its sign": "pip install x --upgrade\n",
    "a bracket in a text": "!ls\nx = '(' # (\n%time\n",
}


@pytest.mark.parametrize("before", COMMANDS_BESIDE.values(), ids=COMMANDS_BESIDE)
def test_only_lines_that_begin_a_statement_are_commands(before: str) -> None:
    assert read_any(before + made()).layout == read_any(made()).layout


VERTEX_POOL = (
    "{'machine_spec': {'machine_type': T, 'accelerator_type': GPU, 'accelerator_count': 2}, "
    "'replica_count': 1, 'disk_spec': {'boot_disk_size_gb': 200}, "
    "'container_spec': {'image_uri': 'x', 'command': ['c']}}"
)
VERTEX_NAMES = "T = 'n1-standard-4'\nGPU = aiplatform.gapic.AcceleratorType.NVIDIA_TESLA_T4\n"
POOLS = {
    "pools": f"worker_pool_specs = [{VERTEX_POOL}]",
    "a job": f"s = [{VERTEX_POOL}]\njob = aip.CustomJob('n', worker_pool_specs=s)\njob.run()",
    "a job of the API": "job = aip.CustomJob(display_name='n', job_spec={'worker_pool_specs': ["
    + VERTEX_POOL + "]})",
    "a job that is yet to be written": f"s = [{VERTEX_POOL}]\njob = aip.CustomJob()\njob.run()",
    "a request": "custom_job = {'display_name': 'n', 'job_spec': {'worker_pool_specs': ["
    + VERTEX_POOL + "]}}",
    "a client of the API": "client.create_custom_job(parent=P, custom_job={'job_spec': {"
    f"'worker_pool_specs': [{VERTEX_POOL}]}}}})",
    "a pool below if": f"s = [{VERTEX_POOL}]\nif x:\n    s.append({{}})\naip.CustomJob('n', s)",
    "!gcloud beside": f"!gcloud storage ls\nworker_pool_specs = [{VERTEX_POOL}]",
}  # fmt: skip


@pytest.mark.parametrize("text", POOLS.values(), ids=POOLS)
def test_worker_pools_in_python_are_read(text: str) -> None:
    found = read_any(VERTEX_NAMES + text)
    assert found.layout == Layout.of("vertex", primary="n1-standard-4+2*T4,disk=200", image="x")
    assert any("command" in path for path in found.left_out)


def test_a_pool_that_only_running_tells_is_named() -> None:
    text = f"if x:\n    T = 'n1-highmem-8'\nworker_pool_specs = [{VERTEX_POOL}]"
    left = read_any(VERTEX_NAMES + text).left_out
    assert "worker_pool_specs[0].machine_spec.machine_type (line 4)" in left


def test_a_training_job_is_read_with_its_run() -> None:
    text = (
        "aiplatform.init(project='p', location='us-central1')\n"
        "job = aiplatform.CustomTrainingJob(display_name='n', script_path='task.py',\n"
        "    container_uri='c', requirements=['r'])\n"
        "model = job.run(replica_count=3, machine_type='n1-standard-4', accelerator_count=1,\n"
        "    accelerator_type='NVIDIA_TESLA_T4', args=['--lr', '1'], timeout=3600, network='w')\n"
    )
    found = read_any(text)
    assert found.layout == Layout.of(
        "vertex", primary="n1-standard-4+1*T4", workers="2*n1-standard-4+1*T4", image="c",
        timeout="1h", region="us-central1",
    )  # fmt: skip
    assert found.script == ("task.py", "--lr", "1")
    assert set(found.left_out) == {"display_name", "requirements", "network"}
    alone = read_any(text[text.index("model") :])
    assert alone.layout.replicas(Role.WORKERS) == 2 and "network" in alone.left_out


@pytest.mark.parametrize(
    "start",
    [
        "CustomTrainingJobOp(worker_pool_specs=[{'machine_spec': {'machine_type': 'n1-standard-8'},"
        " 'replica_count': 1}], ",
        "create_custom_training_job_from_component(train, machine_type='n1-standard-8', ",
    ],
)
def test_a_pipeline_s_component_is_read_with_all_its_arguments(start: str) -> None:
    found = read_any(
        f"{start}display_name='fit', timeout='7200s', strategy='SPOT', location='europe-west4', "
        "max_wait_duration='3600s', restart_job_on_worker_restart=True)"
    )
    assert found.layout == Layout.of(
        "vertex", primary="n1-standard-8", region="europe-west4", spot=True, timeout=7200,
        max_wait=3600,
    )  # fmt: skip
    assert {"display_name", "restart_job_on_worker_restart"} <= set(found.left_out)


def test_reducers_of_a_training_job_are_read() -> None:
    text = "job.run(machine_type='n1-standard-4', reduction_server_replica_count=2{})"
    more = ", reduction_server_machine_type='n1-highcpu-16', reduction_server_container_uri=URI"
    found = read_any(text.format(more))
    assert found.layout == Layout.of("vertex", primary="n1-standard-4", reducers="2*n1-highcpu-16")
    assert found.left_out == ("reduction_server_container_uri",)


def test_a_request_in_snake_case_is_read() -> None:
    pools = [{"machine_spec": {"machine_type": "n1-standard-4"}, "disk_spec": {"other": 1}}]
    for value in (pools, {"worker_pool_specs": pools}):
        found = read_any(json.dumps(value))
        assert found.layout == Layout.of("vertex", primary="n1-standard-4")
        assert found.left_out == ("worker_pool_specs[0].disk_spec.other",)


@pytest.mark.parametrize("text", ["{'lr': hpt.DoubleParameterSpec(min=1, max=2, scale='log')}",
                                  "job = client.list()\nx: y = (\n1)\nprint(job)"])  # fmt: skip
def test_python_without_machines_is_refused_with_what_to_paste(text: str) -> None:
    with pytest.raises(OptionError, match=r"paste the cell with worker_pool_specs = "):
        read_any(text)


def test_an_estimator_has_its_arguments_by_position_too() -> None:
    """As version 2 of the SDK has them; a name in capitals is a name like others."""
    text = "est = Estimator('a/b:1', role, 2, 'ml.m5.xlarge', volume_size=ROLE_ARN)"
    found = read_any(text)
    assert found.layout == Layout.of("sagemaker", workers="2*ml.m5.xlarge", image="a/b:1")
    assert found.left_out == ("volume_size", "role")


@pytest.mark.parametrize(
    "text",
    ["job = PipelineJob(parameter_values={'machine_type': T, 'region': R})\njob.run()",
     "predictor = est.deploy(instance_type='ml.p3.2xlarge', initial_instance_count=1)",
     "image = image_uris.retrieve('xgboost', instance_type='ml.p3.2xlarge')"],
)  # fmt: skip
def test_what_asks_for_no_training_is_no_layout(text: str) -> None:
    with pytest.raises(OptionError, match="no job for Vertex AI"):
        read_any(text)


def test_a_pipelines_parameter_is_read_with_its_default() -> None:
    text = (
        "kind = ParameterString('Kind', default_value='ml.m5.xlarge')\n"
        "count = ParameterInteger(name='Count', default_value=2)\n"
        "spot = ParameterBoolean(name='Spot')\n"
    )
    more = ", use_spot_instances=spot, image_uri=Join(on='/', values=['a']))"
    found = read_any(text + made("kind", "count")[:-2] + more)
    assert found.layout == Layout.of("sagemaker", workers="2*ml.m5.xlarge", framework="pytorch")
    assert found.left_out == (
        "image_uri",
        "instance_type: the pipeline's parameter Kind (its default is read)",
        "instance_count: the pipeline's parameter Count (its default is read)",
        "use_spot_instances",
    )


VARIABLES = [
    *("$N", "${N}", "${_N:-2}", "$(count)", "{N}", "{{ n }}", "{{$.inputs.parameters['n']}}"),
    *("{% if n %}", {"Get": "Parameters.N"}, {"Std:Join": {"On": "/"}}, {"Ref": "N"}),
]


@pytest.mark.parametrize("value", VARIABLES, ids=str)
def test_what_a_pipeline_writes_for_a_value_is_named(value: object) -> None:
    """By the references of Cloud Build, Kubeflow Pipelines, SageMaker Pipelines, CloudFormation."""
    image = value if isinstance(value, dict) else f"a/{value}/b"
    pool = {"machineSpec": {"machineType": value}, "replicaCount": value,
            "containerSpec": {"imageUri": image}}  # fmt: skip
    found = read_any(json.dumps([pool]))
    assert found.layout == Layout.of("vertex", primary="1")
    below = "workerPoolSpecs[0]"
    assert {*found.left_out} == {f"{below}.replicaCount", f"{below}.machineSpec.machineType",
                                 f"{below}.containerSpec.imageUri"}  # fmt: skip
    machines = {"InstanceType": value, "InstanceCount": value}
    asked = read_any(json.dumps({"ResourceConfig": machines}))
    assert asked.layout == Layout.of("sagemaker", workers="1")
    assert {*asked.left_out} == {f"ResourceConfig.{name}" for name in machines}
    if isinstance(value, str) and "'" not in value and " " not in value:
        spec = f"machine-type={value},replica-count={value},container-image-uri=a/{value}"
        command = read_any(f"!gcloud ai custom-jobs create --region={value} "
                           f"--worker-pool-spec={spec}")  # fmt: skip
        assert command.layout == Layout.of("vertex", primary="1")
        assert len(command.left_out) == 4
