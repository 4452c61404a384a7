"""Studies of the clouds' SDKs in Python: read without running it, or named in what was left out."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.tuning.formats import has_study, read_study
from distrain_nb.tuning.options import study

pytestmark = pytest.mark.brief

SPECS = """{
    "lr": hpt.DoubleParameterSpec(min=0.001, max=1, scale="log"),
    "units": hpt.IntegerParameterSpec(4, 128, "linear"),
    "act": hpt.CategoricalParameterSpec(
        values=["relu", "selu"],
        conditional_parameter_spec={
            "slope": hpt.DoubleParameterSpec(
                min=0.1, max=0.9, scale="reverse_log", parent_values=["relu"]
            ),
        },
    ),
    "batch": hpt.DiscreteParameterSpec(values=[128, 256], scale="unspecified"),
}"""
JOB = """
metric_spec = {"val_loss": "minimize"}
parameter_spec = SPECS
specs = [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
          "container_spec": {"image_uri": "x"}}]
job = aiplatform.CustomJob(display_name="a", worker_pool_specs=specs)
hp_job = aiplatform.HyperparameterTuningJob(
    display_name="b", custom_job=job, metric_spec=metric_spec, parameter_spec=parameter_spec,
    max_trial_count=12, parallel_trial_count=3, search_algorithm="random",
)
hp_job.run(timeout=3600)
""".replace("SPECS", SPECS)
WANTED = study(
    {
        "tune": ["lr=0.001..1.0:log", "units=4..128", "act=relu|selu",
                 "slope[act=relu]=0.1..0.9:reverse-log", "batch=128|256"],
        "goal": "min:val_loss", "trials": "12", "parallel": "3", "search": "random",
        "measurement": "best",
    }
)  # fmt: skip


def test_a_tuning_job_of_vertex_ais_sdk_is_read_with_its_machines() -> None:
    found = read_study(JOB)
    assert found.spec == WANTED
    assert found.layout == Layout.of("vertex", primary="n1-standard-4", image="x")
    assert found.left_out == ("run.timeout", "display_name")


@pytest.fixture(scope="module")
def hpt() -> ModuleType:
    from google.cloud.aiplatform import hyperparameter_tuning

    return hyperparameter_tuning


@pytest.mark.slow  # imports the SDK
def test_the_sdk_means_the_same(hpt: ModuleType) -> None:
    """Its own objects, in the request that it sends."""
    specs = eval(SPECS, {"hpt": hpt})
    parameters = [MessageToDict(type(each).pb(each)) for each in
                  (spec._to_parameter_spec(name) for name, spec in specs.items())]  # fmt: skip
    sent = {"parameters": parameters, "metrics": [{"metricId": "val_loss", "goal": "MINIMIZE"}]}
    assert from_tuning_job({"studySpec": sent}).spec.parameters == WANTED.parameters


ESTIMATOR = (
    "est = PyTorch('t.py', instance_type='ml.m5.xlarge', instance_count=2,\n"
    "              hyperparameters={'epochs': 3})\n"
)
TUNER = """
ranges = {"lr": ContinuousParameter(0.01, 0.2, scaling_type="Logarithmic"),
          "batch": CategoricalParameter([32, 64]), "opt": CategoricalParameter(["sgd", "adam"])}
ranges["layers"] = IntegerParameter(1, 5, "Linear")
tuner = HyperparameterTuner(est, "loss", ranges, [{"Name": "loss", "Regex": "loss=(.*)"}],
                            objective_type="Minimize", max_jobs=9, max_parallel_jobs=3, MORE)
tuner.fit(inputs)
"""
TUNED: dict[str, Any] = {
    "tune": ["lr=0.01..0.2:log", "batch=32|64", "opt=sgd|adam", "layers=1..5"],
    "goal": "min:loss", "trials": "9", "parallel": "3",
}  # fmt: skip
HYPERBAND = (
    "strategy='Hyperband', strategy_config=StrategyConfig(hyperband_strategy_config="
    "HyperbandStrategyConfig(max_resource=27, min_resource=1))"
)
MORE: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "stopping": ("early_stopping_type='Auto'", {"stop": "median"}),
    "at random": ("strategy='Random', random_seed=7", {"search": "random,seed=7"}),
    "hyperband": (HYPERBAND, {"stop": "hyperband,min-steps=1,max-steps=27"}),
    "an end": ("max_runtime_in_seconds=3600", {"end": "max-duration=3600"}),
}


@pytest.mark.parametrize(("more", "options"), MORE.values(), ids=MORE)
def test_a_tuner_of_sagemakers_sdk_is_read_with_its_estimator(
    more: str, options: dict[str, str]
) -> None:
    found = read_study(ESTIMATOR + TUNER.replace("MORE", more))
    assert found.spec == study({**TUNED, **options})
    assert found.layout == Layout.of("sagemaker", workers="2*ml.m5.xlarge", framework="pytorch")
    assert found.script == ("t.py", "--epochs", "3")
    assert found.left_out == ("metric_definitions",)


def test_an_estimator_of_another_cell_is_named() -> None:
    found = read_study(TUNER.replace("MORE", "base_tuning_job_name='a'"))
    assert found.layout is None
    assert found.left_out == ("estimator", "base_tuning_job_name", "metric_definitions")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("if x:\n    metric_spec['acc'] = 'maximize'\n", "metric_spec.acc (line 2)"),
        ("parameter_spec['wd'] = hpt.DoubleParameterSpec(low, 1)\n", "parameter_spec.wd.min"),
        ("parameter_spec['wd'] = make()\n", "parameter_spec.wd"),
        ("parameter_spec = make()\n", "parameter_spec"),
        ("metric_spec = ...\n", "metric_spec"),
        ("hp = aip.HyperparameterTuningJob()\n", "HyperparameterTuningJob(…) in line 26"),
    ],
)  # fmt: skip
def test_what_only_running_tells_is_named(change: str, left: str) -> None:
    at = JOB.index("specs = [")
    text = JOB + change if change.startswith("hp ") else JOB[:at] + change + JOB[at:]
    found = [re_numbered(path) for path in read_study(text).left_out]
    assert re_numbered(left) in found


def re_numbered(path: str) -> str:
    """Without the number of the line, which the text before decides."""
    return path.partition(" (line ")[0].partition(" in line ")[0]


REQUEST = """
goal = aip.StudySpec.MetricSpec.GoalType.MINIMIZE
STUDY_SPEC = {
    "metrics": [{"metric_id": "loss", "goal": goal}],
    "parameters": [{"parameter_id": "lr", "double_value_spec": {"min_value": 0.1, "max_value": 1.0},
                    "scale_type": aip.StudySpec.ParameterSpec.ScaleType.UNIT_LOG_SCALE}],
    "algorithm": aip.StudySpec.Algorithm.RANDOM_SEARCH,
}
"""
POOLS = "[{'machine_spec': {'machine_type': 'n1-standard-4'}, 'replica_count': 1}]"
AROUND = (
    "({}study_spec=STUDY_SPEC, max_trial_count=6, trial_job_spec={{'worker_pool_specs': "
    f"{POOLS.replace('{', '{{').replace('}', '}}')}}}}})"
)


@pytest.mark.parametrize("start", ["job = dict", "job = aip.HyperparameterTuningJob"])
def test_a_request_to_vertex_ais_api_is_read(start: str) -> None:
    found = read_study(REQUEST + start + AROUND.format(""))
    assert found.spec == study(
        {"tune": "lr=0.1..1.0:log", "goal": "min:loss", "search": "random", "trials": "6"}
    )
    assert found.layout == Layout.of("vertex", primary="n1-standard-4")
    assert found.left_out == ()


def test_parts_of_a_study_are_read() -> None:
    assert read_study(f"parameter_spec = {SPECS}").spec.parameters == WANTED.parameters
    assert read_study(REQUEST).spec.goals == study({"goal": "min:loss"}).goals
    ranges = "hyperparameter_ranges = {'lr': ContinuousParameter(0.01, 0.2)}"
    assert read_study(ranges).spec.parameters == study({"tune": "lr=0.01..0.2"}).parameters
    assert read_study(ranges).spec.goals == ()


@pytest.mark.parametrize("text", ["tune: lr=0.1..0.2", '{"studySpec": {}}', "x = 1", "fit(study)"])
def test_other_texts_are_no_python_of_a_study(text: str) -> None:
    assert not has_study(text)


def test_python_without_a_study_is_refused_with_what_to_paste() -> None:
    with pytest.raises(OptionError, match=r"paste the cell with HyperparameterTuningJob"):
        read_study("study_spec = make()")
