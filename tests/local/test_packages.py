"""What ranks on this machine find of the packages that a job asks for."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from distrain_nb import api

pytestmark = pytest.mark.brief


def warnings(*require: str) -> list[tuple[str, str]]:
    found = api.check("print(1)", require=require)
    return [(f.where, f.message) for f in found if f.code == "local.require"]


def test_another_version_than_the_installed_one_is_told(home: Path) -> None:
    (found,) = warnings("pyyaml==3.0")
    assert found[0] == "--require pyyaml==3.0"
    assert f"pyyaml {version('pyyaml')} is installed: %pip install 'pyyaml==3.0'" in found[1]


def test_a_package_that_is_not_installed_is_told(home: Path) -> None:
    ((_, message),) = warnings("not-installed-anywhere>=1")
    assert "not known to be installed" in message


@pytest.mark.parametrize(
    "requirement", ["pyyaml", "PyYAML>=3", "torch==2.13.0", "nothing; python_version < '3'"]
)
def test_what_is_met_is_not_told(home: Path, requirement: str) -> None:
    assert warnings(requirement) == []


def test_what_a_cell_imports_is_met(home: Path) -> None:
    found = api.check("import numpy, torch, yaml, google.protobuf")
    assert not [f for f in found if f.code == "local.require"]


def test_a_missing_module_is_no_matter_of_images_here(home: Path) -> None:
    code = "import not_installed_anywhere"
    (here,) = [f for f in api.check(code) if f.code == "capture.unknown-module"]
    assert here.message.endswith("is not installed here: %pip install its package")
    (there,) = [
        f
        for f in api.check(code, on="vertex", primary="n1-standard-4")
        if f.code == "capture.unknown-module"
    ]
    assert there.message.endswith("unless the image has it, name its package with --require")


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        ("try:\n    import not_there\nexcept ImportError:\n    not_there = None", False),
        ("try:\n    from not_there import fast as f\nexcept Exception:\n    f = len", False),
        ("use = False\nif use:\n    import not_there", False),
        ("if __name__ == '__main__':\n    import not_there", True),
        ("try:\n    import not_there\nfinally:\n    pass", True),
        ("def f():\n    import not_there", True),
        ("if 1 < 0:\n    import not_there\nimport not_there", True),
    ],
)
def test_a_module_that_the_code_does_without_is_not_told(
    home: Path, code: str, is_told: bool
) -> None:
    codes = [finding.code for finding in api.check(code)]
    assert ("capture.unknown-module" in codes) == is_told
