"""The release of a framework that was asked for is the one that a job gets, or the job is
refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from distrain_nb.backends.remote.needed_packages import packages_to_install
from distrain_nb.cluster.equipment import BASE, IMAGE, Equipment, Stock, equip
from distrain_nb.cluster.packages import Uses
from distrain_nb.cluster.releases import agree
from distrain_nb.findings import errors
from distrain_nb.image.builders.dependencies import requirements_to_resolve
from distrain_nb.image.installed import Installed
from distrain_nb.layout.hardware import GPU, Hardware
from scripts import accelerator_table
from scripts.accelerator_table import kinds

TODAY = "2026-11-29"
T4 = next(hardware for (_, hardware) in kinds() if hardware.names == ("NVIDIA_TESLA_T4",))
CPUS = Hardware()
P100 = next(hardware for (_, hardware) in kinds() if hardware.names == ("NVIDIA_TESLA_P100",))
NOTEBOOK = {
    "tensorflow": ("tensorflow_cpu==2.21.0", "keras==3.15.1", "numpy==2.4.6"),
    "pytorch": ("torch==2.13.0", "torchvision==0.28.0", "numpy==2.4.6"),
}
TF_CPU = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"


def asked(release: str, required: tuple[str, ...] = ()) -> Uses:
    framework, _, number = release.partition("-")
    imports = frozenset({"torch" if framework == "pytorch" else framework})
    lines = NOTEBOOK.get(framework, ())
    return Uses((framework,), imports, lines, required, framework, number or None)


def equipped(place: str, uses: Uses, hardware: Hardware = CPUS, **stock: Any) -> Equipment:
    there = replace(accelerator_table.stock(place, today=TODAY), **stock)
    return equip(uses, hardware, there)


def gets(equipment: Equipment, uses: Uses, there: Stock) -> bool:
    """Whether the image has the release, or a package of it is installed in the image."""
    row = there.row_of(equipment.image)
    if row and row.framework == uses.chosen:
        return agree(row.version, str(uses.version))
    package = "torch" if uses.chosen == "pytorch" else "tensorflow"
    lines = (*equipment.requirements, *equipment.required)
    return any(line.startswith(package) and f"=={uses.version}." in line for line in lines)


@pytest.mark.parametrize("place", ["vertex", "sagemaker"])
@pytest.mark.parametrize("hardware", [Hardware(), T4], ids=["CPU", "T4"])
@pytest.mark.parametrize("archive", [False, True], ids=["image", "archive"])
@pytest.mark.parametrize("framework", ["tensorflow", "pytorch"])
def test_the_asked_release_or_a_refusal(
    place: str, hardware: Hardware, archive: bool, framework: str
) -> None:
    """Every release from 1.0 to 3.9, those that nobody has made too."""
    ends = set()
    for number in [f"{major}.{minor}" for major in (1, 2, 3) for minor in range(25)]:
        uses, bare = asked(f"{framework}-{number}"), "" if archive else accelerator_table.BARE
        there = replace(accelerator_table.stock(place, today=TODAY), bare=bare, archive=archive)
        equipment = equip(uses, hardware, there)
        refused = bool(errors(equipment.findings))
        ends.add(refused)
        assert refused or gets(equipment, uses, there), (number, equipment)
    assert ends == {True, False}


def test_a_refusal_says_what_there_is() -> None:
    (finding,) = equipped("sagemaker", asked("tensorflow-1.13")).findings
    assert (finding.code, finding.where) == ("framework.release", "framework")
    assert "tensorflow 1.13 is not available for a CPU" in finding.message
    assert "containers have 2.6, 2.7" in finding.message and "2.19" in finding.message
    assert "PyPI has tensorflow for Python 3.11 from 2.12 on" in finding.message
    cell = "%%distrain --on sagemaker --framework tensorflow-1.13 --workers 2*ml.m5.xlarge\nx = 1"
    (fix,) = finding.fixes
    assert "--framework tensorflow-2.19.0 --workers" in fix.apply(cell)
    (finding,) = equipped("sagemaker", asked("mxnet-1.9")).findings
    assert "no package of mxnet is known" in finding.message


def test_what_is_released_with_a_framework_goes_with_its_release() -> None:
    there = equipped("vertex", asked("pytorch-2.5"), T4)
    assert there.requirements == ("torch==2.5.*", "torchvision", "numpy==2.4.6")
    there = equipped("vertex", asked("tensorflow-2.18"), T4)
    assert there.requirements == ("tensorflow[and-cuda]==2.18.*", "keras", "numpy==2.4.6")


def test_a_named_image_that_has_another_release_is_refused() -> None:
    for option in (BASE, IMAGE):
        there = equipped("vertex", asked("tensorflow-2.18"), named=TF_CPU, option=option)
        codes = [finding.code for finding in there.findings]
        assert codes[0] == "framework.release" and "2.17" in there.findings[0].message
        assert not errors(
            equipped("vertex", asked("tensorflow-2.17"), named=TF_CPU, option=option).findings
        )


def test_two_releases_that_were_asked_for_contradict_each_other() -> None:
    (finding,) = equipped("vertex", asked("pytorch-2.5", ("torch==2.4.1",))).findings
    assert "--framework asks for pytorch 2.5, --require for torch==2.4.1" in finding.message
    there = equipped("vertex", asked("pytorch-2.5", ("torch>=2",)))
    assert not there.findings and there.required == ("torch==2.5.*,>=2",)
    assert not equipped("vertex", asked("pytorch-2.5", ("torch==2.5.1",))).findings


def test_the_default_has_not_ended() -> None:
    """While another container or the framework's own packages serve the devices."""
    for place, hardware in kinds():
        for framework in ("tensorflow", "pytorch"):
            there = accelerator_table.stock(place, today=TODAY)
            equipment = equip(asked(framework), hardware, there)
            ended = "accelerator.image-ended" in [x.code for x in equipment.findings]
            bare = equip(asked(framework), hardware, replace(there, named=there.bare))
            assert not ended or errors(bare.findings), (place, hardware, equipment)


def test_an_ended_container_is_taken_where_nothing_else_serves_the_devices() -> None:
    (finding,) = equipped("vertex", asked("pytorch"), P100).findings
    assert finding.code == "accelerator.image-ended"
    assert not finding.fixes  # PyPI's own build doesn't use these GPUs
    assert P100.device == GPU


def test_a_base_that_has_another_release_is_noted() -> None:
    for has, notes in (("2.17.1", 1), ("2.18.1", 0)):
        installed = Installed("3.11", "linux", {"tensorflow": has})
        lines, said = requirements_to_resolve(("tensorflow-cpu==2.18.*",), (), installed)
        assert not lines and len(said) == notes
    assert requirements_to_resolve(("torch==2.5.*",), (), Installed("3.11", "linux"))[0] == (
        "torch==2.5.*",
    )


def test_an_archive_asks_for_the_release_too() -> None:
    there = equipped("vertex", asked("pytorch-2.5"))
    assert list(packages_to_install(there, ())) == ["torch==2.5.*", "torchvision", "numpy"]
