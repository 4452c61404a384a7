"""What the project requires can be had beside everything that a place pins."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from tests.embedding.environments import COLAB, DISTRIBUTION_2, DISTRIBUTION_4, ROOT, Place, uv


@pytest.mark.parametrize(
    ("place", "extra"),
    [(DISTRIBUTION_4, "sagemaker"), (DISTRIBUTION_2, "sagemaker"), (COLAB, "vertex")],
    ids=lambda value: getattr(value, "name", value),
)
def test_nothing_that_is_pinned_changes(place: Place, extra: str) -> None:
    """uv knows all of the place's packages and its Python, and says what can't be had together."""
    wanted = ["--extra", extra, "--python-version", place.python]
    resolved = uv(
        "pip",
        "compile",
        "--no-python-downloads",
        "--no-annotate",
        *wanted,
        *place.pinned,
        str(ROOT / "pyproject.toml"),
    )
    found = [Requirement(line) for line in resolved.splitlines() if not line.startswith("#")]
    changed = {
        each.name: str(each.specifier)
        for each in found
        if each.name in place.pins and not each.specifier.contains(place.pins[each.name])
    }
    assert {"ipywidgets", "ipython", "numpy"} <= {each.name for each in found}
    assert not changed
