"""A dry run lists the packages that the job installs: those that are sent, in their builds."""

from __future__ import annotations

from typing import Any

import pytest

from distrain_nb.api import prepare

CODE = "import jax\nimport tensorflow\n"
PLACES: dict[str, dict[str, Any]] = {
    "vertex": {"primary": "n1-standard-8+2*T4", "region": "us-central1", "project": "p-123456"},
    "sagemaker": {"workers": "2*ml.g4dn.xlarge", "region": "us-west-2", "role": "training"},
}
# By place: packages of the image that is built.
BUILT = {
    "vertex": ("jax[cuda12]==", "tensorflow[and-cuda]==", "einops>=0.7"),
    "sagemaker": ("jax[cuda12]==", "tensorflow: the image's own", "einops>=0.7"),
}


def listed(text: str) -> list[str]:
    head = "Packages that the job gets:\n"
    assert "Requirements:" not in text
    return [line.strip() for line in text.partition(head)[2].partition("\n\n")[0].splitlines()]


@pytest.mark.parametrize("place", PLACES)
def test_of_an_image_that_is_built(place: str) -> None:
    prepared = prepare(CODE, on=place, bucket="b-123", require=["einops>=0.7"], **PLACES[place])
    lines = listed(str(prepared))
    assert len(lines) == len(BUILT[place])
    for line, begins in zip(lines, BUILT[place], strict=True):
        assert line.startswith(begins)
    spec = prepared.plan.spec()
    sent = (*spec.requirements, *spec.required)
    assert [line for line in lines if line not in sent] == [x for x in lines if x.endswith("own")]


@pytest.mark.parametrize("place", PLACES)
def test_of_a_container_that_installs_them(place: str) -> None:
    options = {**PLACES[place], "python_package": True, "bucket": "b-123"}
    lines = listed(str(prepare(CODE, on=place, require=["einops>=0.7"], **options)))
    assert lines[-1] == "einops>=0.7"
    assert "jax[cuda12]" in lines and not [line for line in lines if "tensorflow" in line]


@pytest.mark.parametrize("place", PLACES)
def test_of_an_image_of_the_users_own(place: str) -> None:
    text = str(prepare(CODE, on=place, image="registry.corp.net/mine:1", **PLACES[place]))
    assert "Packages that" not in text and "Requirements:" not in text


def test_on_this_machine_the_cells_requirements_are_listed() -> None:
    assert "Requirements:\n  jax==" in str(prepare(CODE, on="local", workers=1))
