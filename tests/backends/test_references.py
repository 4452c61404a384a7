"""Whatever we refuse or advise has a reference of the service's, and is as strict as that."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.model import StringShape
from botocore.session import Session

import distrain_nb
from distrain_nb.backends.remote.variables import VARIABLE
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import limit
from distrain_nb.places.sagemaker import options as aws_options
from distrain_nb.places.sagemaker import studies as sagemaker
from distrain_nb.places.sagemaker import tuning_request
from distrain_nb.places.sagemaker.offers import SageMakerOffers
from distrain_nb.places.vertex import options as vertex_options
from distrain_nb.places.vertex import studies as vertex
from distrain_nb.places.vertex import validation
from distrain_nb.tuning.options import study
from distrain_nb.tuning.rules import check
from tests.backends.references import REFERENCES, REFUSED, Field, Shape

HOME = Path(distrain_nb.__file__).parent
# Where findings are made, by what their codes begin with: codes of studies are the same anywhere.
STUDIES = [HOME / f"places/{name}/studies.py" for name in ("ai_platform", "sagemaker", "vertex")]
FILES = {
    "vertex.": sorted({*HOME.glob("places/vertex/*.py")} - {*STUDIES}),
    "sagemaker.": sorted({*HOME.glob("places/sagemaker/*.py")} - {*STUDIES}),
    "": [*sorted(HOME.glob("tuning/rules/*.py")), *STUDIES],
}
# The functions that make a finding, and which of their arguments is its code.
MAKERS = {"error": 1, "study_warning": 1, "_over": 1, "_error": 0, "_warning": 0, "Finding": 0}
SHAPES = Session().get_service_model("sagemaker")


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Each call of a plain function, with the start of its codes and the function's name."""
    for start, files in FILES.items():
        for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield start, node.func.id, node


def text_of(node: ast.expr) -> str:
    """A literal, with what is put into it by its expression, or nothing."""
    if isinstance(node, ast.JoinedStr):
        return ast.unparse(node)[2:-1]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def codes() -> set[str]:
    found = set()
    for start, name, call in calls():
        if name in MAKERS and len(call.args) > MAKERS[name]:
            text = text_of(call.args[MAKERS[name]])
            found |= (
                {text if "." in text else f"{start}{text}"}
                if text and not text.endswith("{code}")
                else set()
            )
    return found


def test_every_finding_of_a_service_has_a_reference() -> None:
    assert codes() | {".study-only"} == REFERENCES.keys()


def test_every_option_that_is_refused_has_a_reference() -> None:
    told = {text_of(call.args[0]) for _, name, call in calls()
            if name == "OptionError" and call.args}  # fmt: skip
    found = {text: {start for start in REFUSED if text.startswith(start)} for text in told if text}
    assert not [text for text, starts in found.items() if not starts]
    assert set().union(*found.values()) == REFUSED.keys()


ALL = {**REFERENCES, **REFUSED}
FIELDS = sorted({each for group in ALL.values() for each in group if isinstance(each, Field)})
NAMED = sorted({each.name for group in ALL.values() for each in group if isinstance(each, Shape)})


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.message}-{field.words[:20]}")
def test_vertex_ais_reference_says_so(field: Field) -> None:
    module, *names = field.message.split(".")
    found: Any = importlib.import_module(f"google.cloud.aiplatform_v1.types.{module}")
    for name in names:
        found = getattr(found, name)
    words = re.sub(r" \(\w+(\.\w+)*(\[[\w.]+\])?\):", "", " ".join(found.__doc__.split()))
    assert field.words in words


@pytest.mark.parametrize("name", NAMED)
def test_the_shape_is_in_sagemakers_model(name: str) -> None:
    assert SHAPES.shape_for(name)


def bounds(name: str) -> tuple[Any, Any]:
    metadata = SHAPES.shape_for(name).metadata
    return metadata.get("min"), metadata.get("max")


def test_our_limits_are_those_of_sagemakers_model() -> None:
    assert bounds("ParameterValues") == (1, sagemaker.MOST_VALUES)
    for kind in ("Integer", "Continuous", "Categorical"):
        assert bounds(f"{kind}ParameterRanges")[1] == sagemaker.MOST_PARAMETERS
    assert bounds("HyperParameterTuningMaxRuntimeInSeconds") == sagemaker.SECONDS
    assert bounds("MaxNumberOfTrainingJobsNotImproving")[0] == sagemaker.LEAST_NO_PROGRESS
    assert bounds("HyperParameterTuningJobName")[1] == tuning_request.LONGEST_NAME
    assert {bounds(f"Hyperband{end}Resource")[0] for end in ("StrategyMin", "StrategyMax")} == {1}
    said = SHAPES.shape_for("HyperbandStrategyConfig").members["MaxResource"].documentation
    assert f"The maximum value is {sagemaker.MOST_STEPS:,} epochs" in said
    texts = {name: limit(current(), "sagemaker", name)[0] for name in
             ("channels_max", "channel_name_length_max", "channel_name_pattern")}  # fmt: skip
    assert bounds("InputDataConfig")[1] == int(texts["channels_max"])
    assert bounds("ChannelName")[1] == int(texts["channel_name_length_max"])
    alike(texts["channel_name_pattern"], "ChannelName")
    alike(VARIABLE.pattern, "TrainingEnvironmentKey")


def alike(pattern: str, name: str) -> None:
    """Both take the same of short texts with every sign."""
    shape = SHAPES.shape_for(name)
    assert isinstance(shape, StringShape)
    theirs = re.compile(shape.metadata["pattern"], re.ASCII)
    signs = [chr(code) for code in range(1, 300)]
    for text in ["", *signs, *(f"a{sign}" for sign in signs), *(f"a{sign}b" for sign in signs)]:
        assert bool(re.fullmatch(pattern, text)) is bool(theirs.fullmatch(text)), repr(text)


def test_our_limits_are_those_of_vertex_ais_reference() -> None:
    """The numbers that the words of `references` have."""
    words = {code: " ".join(each.words for each in group if isinstance(each, Field))
             for code, group in ALL.items()}  # fmt: skip
    assert f"more than {vertex.MOST_VALUES:,} values" in words["tune-values"]
    assert f"up to {validation.LONGEST_NAME} characters" in words["vertex.name"]
    assert f"limit is {validation.MOST_VARIABLES}" in words["vertex.env-count"]
    assert f"^{validation.PERSISTENT_RESOURCE.pattern}$" in words["vertex.persistent-resource"]
    low, high = re.findall(r"\d+", validation.CONTEXT.pattern)[-2:]
    assert f"{low}-{high} characters" in words["vertex.experiment-name"]
    assert f"longer than {vertex_options.LONGEST_LABEL} characters" in words["invalid --label"]


def test_every_region_that_botocore_knows_has_our_form() -> None:
    form, _ = SageMakerOffers.regions
    session = Session()
    names = [name for partition in session.get_available_partitions()
             for name in session.get_available_regions("sagemaker", partition)]  # fmt: skip
    assert len(names) > 20
    assert not [name for name in names if not form.fullmatch(name)]


@pytest.mark.parametrize(
    "text", ["équipe=été", "チーム=研究", f"a={'b' * 64}", "a1_-=", "команда=а"]
)
def test_labels_of_any_script_are_taken(text: str) -> None:
    name, value = text.split("=")
    assert vertex_options.labels([text]) == {name: value}


@pytest.mark.parametrize(
    "texts",
    [["Équipe=1"], ["a=É"], ["1a=b"], ["a.b=c"], [f"a={'b' * 65}"], ["a b=c"],
     [f"a{n}=" for n in range(64)]],
)  # fmt: skip
def test_other_labels_are_not(texts: list[str]) -> None:
    with pytest.raises(OptionError, match="--label"):
        vertex_options.labels(texts)


@pytest.mark.parametrize(
    ("regex", "line", "value"),
    [(r"'loss': ([0-9]+(.|e\-)[0-9]+),?", "{'loss': 0.25, 'epoch': 1}", "0.25"),
     (r"loss=([0-9.]+) (acc|f1)=([0-9.]+)", "loss=2.5 acc=0.5", "2.5")],
)  # fmt: skip
def test_a_metrics_number_is_in_the_first_of_several_groups(
    regex: str, line: str, value: str
) -> None:
    """As Hugging Face's notebooks for SageMaker have it."""
    found = aws_options.metrics([f"loss={regex}"])
    assert re.search(found["loss"], line)[1] == value  # type: ignore[index]


def test_secrets_of_an_alias_are_named() -> None:
    name = "projects/p/secrets/token/versions/"
    assert vertex_options.secret("A", "token/in-use", "p") == f"{name}in-use"
    assert vertex_options.secret("A", f"{name}in-use", "") == f"{name}in-use"


@pytest.mark.parametrize("name", ["AIP_STORAGE_URI", "CLOUD_ML_REGION", "AIP_MINE"])
def test_variables_that_the_service_does_not_set_are_taken(name: str) -> None:
    assert vertex_options.variables([f"{name}=1"]) == {name: "1"}


def found(place: str, **more: Any) -> set[str]:
    given = {"tune": "lr=1e-5..0.1:log", "goal": "min:loss", "trials": "20", **more}
    return {finding.code for finding in errors(check(study(given), place))}


NAMES = {"tune": '"learning rate"=1e-5..0.1:log', "goal": "min:validation loss"}


def test_spaces_in_names_are_refused_by_vertex_ai_alone() -> None:
    assert found("vertex", **NAMES) == {"tune-name-place", "goal-metric-place"}
    for place in ("local", "sagemaker", "ai-platform"):
        assert found(place, **NAMES) == set()


def test_a_reverse_log_scale_may_begin_at_0_on_sagemaker_alone() -> None:
    momentum = "momentum=0..0.99:reverse-log"
    assert found("sagemaker", tune=momentum) == set()
    for place in ("local", "vertex", "ai-platform"):
        assert found(place, tune=momentum) == {"tune-scale"}


def test_a_reverse_log_scale_ends_below_1_on_sagemaker_alone() -> None:
    momentum = "momentum=0.5..1.0:reverse-log"
    assert found("sagemaker", tune=momentum) == {"tune-scale"}
    for place in ("local", "vertex", "ai-platform"):
        assert found(place, tune=momentum) == set()


@pytest.mark.parametrize(
    ("more", "errors_", "warnings"),
    [({"parallel": "10"}, set(), set()), ({"parallel": "11"}, set(), {"parallel-place"}),
     ({"parallel": "100", "trials": "200"}, set(), {"parallel-place"}),
     ({"parallel": "101", "trials": "200"}, {"parallel-place"}, set()),
     ({"trials": "751"}, {"trials-place"}, set()),
     ({"trials": "751", "search": "random"}, set(), {"trials-place"}),
     ({"trials": "10000", "search": "random"}, set(), {"trials-place"}),
     ({"trials": "10001", "search": "random"}, {"trials-place"}, set()),
     ({"stop": "hyperband,max-steps=20001"}, {"stop-steps-place"}, set())],
)  # fmt: skip
def test_sagemakers_budgets(more: dict[str, str], errors_: set[str], warnings: set[str]) -> None:
    given = {"tune": "lr=1e-5..0.1:log", "goal": "min:loss", "trials": "20", **more}
    findings = check(study(given), "sagemaker")
    assert {finding.code for finding in errors(findings)} == errors_
    assert {finding.code for finding in findings} == errors_ | warnings
    for finding in findings:
        for fix in finding.fixes:
            assert not check(fix.apply(study(given)), "sagemaker")
