"""Studies in the clouds' forms: read back as they were, and taken by the clouds' own models."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from study_strategies import examples, studies

from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Pool
from distrain_nb.places.ai_platform.forms.study import hyperparameters
from distrain_nb.places.sagemaker.forms.study import tuning_config
from distrain_nb.places.vertex.forms.study import tuning_job
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.formats import all_forms, forms_of, read_study
from distrain_nb.tuning.options import study
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import (
    Categorical,
    Condition,
    Discrete,
    Double,
    Goal,
    HyperbandStopping,
    Integer,
    MedianStopping,
    Parameter,
    Search,
    StudyEnd,
    StudySpec,
)
from distrain_nb.tuning.words import written_number

TUNED = [
    "optimizer=sgd|adam",
    "lr=1e-5..0.1:log",
    "width=16|32|64",
    "layers=1..4",
    "momentum[optimizer=sgd]=0.5..0.99:reverse-log",
]
BY_NAME = {form.name: form for form in all_forms()}


def by_name(spec: StudySpec) -> StudySpec:
    """Parameters in the order of their names: a tree of conditions has another order."""
    return spec.edited(parameters=tuple(sorted(spec.parameters, key=lambda each: each.name)))


def on_vertex(spec: StudySpec) -> StudySpec:
    """What Vertex AI can say of a study."""
    kept = spec.search.algorithm if spec.search.algorithm in ("random", "grid") else None
    stopping = None if isinstance(spec.stopping, HyperbandStopping) else spec.stopping
    return by_name(
        spec.edited(
            search=Search(kept),
            stopping=stopping,
            initial=(),
            max_failed=spec.max_failed or None,
        )
    )


def without_places(spec: StudySpec) -> StudySpec:
    """The least that all clouds can say: one goal, and nothing but domains and scales."""
    parameters = tuple(
        Parameter(each.name, replace(each.domain, default=None), each.scale)
        for each in spec.parameters
    )
    goal = Goal(spec.goals[0].metric, spec.goals[0].direction)
    search = replace(on_vertex(spec).search, seed=None)
    return StudySpec(parameters, (goal,), search, None, spec.trials, spec.parallel)


@examples
@given(studies())
def test_vertex_json_and_yaml_read_back_equal(spec: StudySpec) -> None:
    for name in ("vertex-json", "vertex-yaml"):
        found = read_study(BY_NAME[name].text(spec))
        assert (by_name(found.spec), found.left_out) == (on_vertex(spec), ())


@examples
@given(studies())
def test_the_service_itself_reads_a_study_and_gives_it_back(spec: StudySpec) -> None:
    """Through the messages of `aiplatform_v1`, in whose JSON what is 0 or false isn't written."""
    from google.cloud.aiplatform_v1 import HyperparameterTuningJob
    from google.protobuf.json_format import MessageToDict, ParseDict

    message = ParseDict(tuning_job(spec), HyperparameterTuningJob.pb(HyperparameterTuningJob()))
    for camel in (True, False):
        given = MessageToDict(message, preserving_proto_field_name=not camel)
        found = read_study(json.dumps(given))
        assert tuning_job(found.spec) | {"studySpec": None} == tuning_job(spec) | {
            "studySpec": None
        }
        back = ParseDict(
            tuning_job(found.spec), HyperparameterTuningJob.pb(HyperparameterTuningJob())
        )
        assert back == message
        assert found.left_out == ()


@examples
@given(studies())
def test_ai_platforms_config_reads_back_equal(spec: StudySpec) -> None:
    plain = without_places(spec)
    for more in ({}, {"stopping": MedianStopping()}, {"max_failed": 3}):
        wanted = plain.edited(**more)
        found = read_study(BY_NAME["ai-platform-yaml"].text(wanted))
        assert (found.spec, found.left_out) == (wanted, ())


@examples
@given(studies())
def test_sagemakers_config_reads_back_equal_but_for_numbers_as_words(spec: StudySpec) -> None:
    plain = without_places(spec)
    if plain.search.algorithm == "grid":
        plain = plain.edited(trials=combinations(plain) or 1)
    for more in (
        {"search": replace(plain.search, seed=3)},
        {"stopping": MedianStopping(), "end": StudyEnd(max_duration=600.0)},
        {"stopping": HyperbandStopping(1, 27), "search": Search(), "trials": 9},
        {"end": StudyEnd(max_trials_no_progress=5)},
    ):
        wanted = plain.edited(**more)
        found = read_study(BY_NAME["sagemaker-json"].text(wanted))
        assert by_name(found.spec) == by_name(wanted.edited(parameters=worded(wanted)))
        assert found.left_out == ()


def worded(spec: StudySpec) -> tuple[Parameter, ...]:
    """Lists of numbers as words, which have no scale."""
    return tuple(
        Parameter(each.name, Categorical(tuple(map(written_number, each.domain.values))))
        if isinstance(each.domain, Discrete)
        else each
        for each in spec.parameters
    )


@examples
@given(studies())
def test_botocore_takes_a_config_of_a_study_without_errors(spec: StudySpec) -> None:
    from botocore.validate import ParamValidator

    found = ParamValidator().validate(tuning_config(without_places(spec)), config_shape())
    assert not found.has_errors()


@cache
def config_shape() -> Any:
    import botocore.session

    model = botocore.session.get_session().get_service_model("sagemaker")
    return model.shape_for("HyperParameterTuningJobConfig")


@examples
@given(studies())
def test_ai_platforms_discovery_document_knows_every_field_and_word(spec: StudySpec) -> None:
    schemas, given = discovery(), hyperparameters(without_places(spec))
    for schema, values in [("HyperparameterSpec", given)] + [
        ("ParameterSpec", each)
        for each in given["params"]  # type: ignore[union-attr]
    ]:
        known = schemas[f"GoogleCloudMlV1__{schema}"]["properties"]
        types = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
        for name, value in values.items():  # type: ignore[union-attr]
            assert value in known[name].get("enum", [value])
            assert isinstance(value, types.get(known[name]["type"], list))


@cache
def discovery() -> Any:
    """The one that Google's client library ships."""
    folder = resources.files("googleapiclient.discovery_cache") / "documents"
    return json.loads((folder / "ml.v1.json").read_text(encoding="utf-8"))["schemas"]


def test_gclouds_command_counts_the_trials() -> None:
    spec = study({"tune": "lr=0..1.0", "goal": "min:loss", "trials": "20", "parallel": "2"})
    first, *_ = BY_NAME["vertex-yaml"].text(spec).splitlines()
    assert first.startswith("# gcloud ai hp-tuning-jobs create --config=FILE ")
    assert first.endswith(" --max-trial-count=20 --parallel-trial-count=2")


def test_the_documents_config_of_gcloud() -> None:
    found = read_study("""
studySpec:
  metrics:
  - metricId: accuracy
    goal: MAXIMIZE
  parameters:
  - parameterId: learning_rate
    doubleValueSpec:
      minValue: 0.001
      maxValue: 1
    scaleType: UNIT_LOG_SCALE
  - parameterId: num_units
    discreteValueSpec:
      values: [64, 128, 512]
  - parameterId: tag
    categoricalValueSpec:
      values: ["16", "1.10", on]
  algorithm: ALGORITHM_UNSPECIFIED
trialJobSpec:
  workerPoolSpecs:
  - machineSpec:
      machineType: n1-standard-8
    replicaCount: 1
    containerSpec:
      imageUri: gcr.io/p/i:1
      args: [--epochs, "3"]
""")
    assert found.spec == StudySpec(
        (
            Parameter("learning_rate", Double(0.001, 1.0), "log"),
            Parameter("num_units", Discrete((64.0, 128.0, 512.0))),
            Parameter("tag", Categorical(("16", "1.10", "on"))),
        ),
        (Goal("accuracy", "max"),),
    )
    assert found.layout is not None
    assert found.layout.primary == Pool(1, "n1-standard-8")
    assert found.left_out == ("trialJobSpec.workerPoolSpecs[0].containerSpec.args",)


def test_ai_platforms_config_with_its_layout() -> None:
    found = read_study("""
trainingInput:
  scaleTier: CUSTOM
  masterType: complex_model_m
  hyperparameters:
    goal: MAXIMIZE
    maxTrials: 30
    maxParallelTrials: 1
    hyperparameterMetricTag: metric1
    enableTrialEarlyStopping: TRUE
    resumePreviousJobId: job_1
    params:
    - parameterName: hidden1
      type: INTEGER
      minValue: 40
      maxValue: 400
      scaleType: UNIT_LINEAR_SCALE
    - parameterName: rnnCellType
      type: CATEGORICAL
      categoricalValues: [BasicRNNCell, LSTMCell]
""")
    assert found.spec == StudySpec(
        (
            Parameter("hidden1", Integer(40, 400)),
            Parameter("rnnCellType", Categorical(("BasicRNNCell", "LSTMCell"))),
        ),
        (Goal("metric1", "max"),),
        stopping=MedianStopping(),
        trials=30,
    )
    assert found.layout is not None
    assert found.layout.primary == Pool(1, "complex_model_m")
    assert found.left_out == ("trainingInput.hyperparameters.resumePreviousJobId",)


def test_a_request_to_sagemaker_with_its_layout_and_what_has_no_place() -> None:
    spec = study({"tune": TUNED[:4], "goal": "min:val/loss", "trials": "20", "parallel": "2"})
    request = {
        "HyperParameterTuningJobName": "tune-1",
        "HyperParameterTuningJobConfig": {
            **tuning_config(spec),
            "TuningJobCompletionCriteria": {"TargetObjectiveMetricValue": 0.1},
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {"TrainingInputMode": "File", "TrainingImage": "i:1"},
            "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 2},
            "StaticHyperParameters": {"epochs": "3"},
        },
        "WarmStartConfig": {"WarmStartType": "TransferLearning"},
        "Autotune": {"Mode": "Enabled"},
    }
    found = read_study(json.dumps(request))
    assert by_name(found.spec) == by_name(spec.edited(parameters=worded(spec)))
    assert found.layout is not None
    assert found.layout.workers == Pool(2, "ml.m5.xlarge")
    assert set(found.left_out) == {
        "TrainingJobDefinition.HyperParameters.epochs",
        "HyperParameterTuningJobConfig.TuningJobCompletionCriteria.TargetObjectiveMetricValue",
        "WarmStartConfig",
        "Autotune",
    }


def test_conditions_stand_within_their_parents_on_vertex() -> None:
    spec = study({"tune": TUNED, "goal": "min:loss"})
    (first, *_) = tuning_job(spec)["studySpec"]["parameters"]  # type: ignore[index,call-overload]
    assert first["conditionalParameterSpecs"] == [
        {
            "parentCategoricalValues": {"values": ["sgd"]},
            "parameterSpec": {
                "parameterId": "momentum",
                "doubleValueSpec": {"minValue": 0.5, "maxValue": 0.99},
                "scaleType": "UNIT_REVERSE_LOG_SCALE",
            },
        }
    ]


def test_a_condition_that_has_no_place_is_refused_not_dropped() -> None:
    lost = Parameter("m", Double(0.0, 1.0), condition=Condition("optimizer", ("sgd",)))
    for others in ((), (Parameter("optimizer", Double(0.0, 1.0)),)):
        with pytest.raises(OptionError, match="m depends on optimizer"):
            tuning_job(StudySpec((lost, *others), (Goal("loss", "min"),)))


def test_what_a_form_has_no_place_for_is_named() -> None:
    spec = study(
        {
            "tune": [*TUNED, "depth=1..8,default=3"],
            "goal": ["min:loss", "max:accuracy,threshold=0.5"],
            "search": "random,seed=3",
            "stop": "decay-curve",
            "initial": "lr=0.01",
            "end": "max-duration=2h,min-trials=5",
            "measurement": "best",
            "max_failed": "3",
        }
    )
    named = {name: set(form.left_out(spec)) for name, form in BY_NAME.items()}
    assert named["yaml"] == set()
    grid = study({"tune": "a=x|y", "goal": "min:loss", "search": "grid", "trials": "2"})
    assert BY_NAME["sagemaker-json"].left_out(grid) == ("trials",)
    assert read_study(BY_NAME["sagemaker-json"].text(grid.edited(trials=1))).spec.trials == 2
    assert named["vertex-json"] == named["vertex-yaml"] == {"search.seed", "initial"}
    assert named["sagemaker-json"] == {
        "stopping", "max_failed", "initial", "measurement", "end.min_trials", "goal accuracy",
        "momentum.condition", "depth.default",
    }  # fmt: skip
    assert named["ai-platform-yaml"] == {
        "search.seed", "initial", "measurement", "end.min_trials", "end.max_duration",
        "goal accuracy", "momentum.condition", "depth.default",
    }  # fmt: skip


@examples
@given(studies(), st.sampled_from(["vertex", "sagemaker", "ai-platform"]))
def test_a_study_that_a_place_takes_loses_nothing_that_no_finding_names(
    spec: StudySpec, place: str
) -> None:
    """What a form leaves out is never left out in silence: a rule of the place says so."""
    found = check(spec, place)
    if errors(found):
        return
    said = " ".join(f"{each.where} {each.message}" for each in found)
    for form in forms_of(place)[:-1]:
        whole = spec.search.algorithm == "grid" and combinations(spec) == spec.trials
        for name in {*form.left_out(spec)} - ({"trials"} if whole else set()):
            assert name.split(".")[0].replace("_", "-") in said, (name, said)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("a: 1", "not a study in a known form"),
        ('{"studySpec": {"parameters": 3}}', r"invalid studySpec.parameters 3: expected a list"),
        ('{"studySpec": {"parameters": [{"parameterId": "x"}]}}', "has no values: expected double"),
        ('{"studySpec": {"metrics": [{"goal": "LEAST"}]}}', r"metrics\[0\].goal 'LEAST': expected"),
        ('{"studySpec": {}, "maxTrialCount": "many"}', "maxTrialCount 'many'"),
        ('{"params": [{"parameterName": "x"}]}', "type is missing"),
        ('{"ResourceLimits": {}, "Strategy": "Best"}', "Strategy 'Best': expected Bayesian"),
    ],
)
def test_what_is_no_study_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        read_study(text)


@examples
@given(studies(), st.data())
def test_any_form_with_a_part_lost_or_replaced_raises_only_a_refusal(
    spec: StudySpec, data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from(all_forms()))
    try:
        value = yaml.safe_load(form.text(without_places(spec)))
    except OptionError:
        return
    _spoil(value, data)
    with contextlib.suppress(OptionError):
        read_study(json.dumps(value))


def _spoil(value: Any, data: st.DataObject) -> None:
    while isinstance(value, (dict, list)) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(keys))
        below = value[key]
        if not isinstance(below, (dict, list)) or not below or data.draw(st.booleans()):
            value[key] = data.draw(st.sampled_from([None, 3, "x", [], {}, [3], {"a": 1}, -1.5]))
            return
        value = below
