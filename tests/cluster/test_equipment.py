"""Every machine of the tables with every kind of program: what is paid for is used, or refused."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.cluster.equipment import BASE, IMAGE, Equipment, Stock, equip
from distrain_nb.cluster.packages import Uses
from distrain_nb.findings import Severity
from distrain_nb.layout.hardware import (
    AMD64,
    ARM64,
    CPU,
    GPU,
    NEURON,
    TITLES,
    TPU,
    Hardware,
)
from scripts import accelerator_table
from scripts.accelerator_table import kinds

if TYPE_CHECKING:
    pass

TODAY = "2026-11-26"
VERSIONS = {
    "torch": "2.13.0", "tensorflow-cpu": "2.21.0", "jax": "0.10.2", "keras": "3.15.1",
    "xgboost-cpu": "3.2.0", "numpy": "2.4.6", "somebody": "1.0", "flax": "0.12.8",
}  # fmt: skip
PROGRAMS: dict[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "torch and torch_xla": ("torch==2.9.0", "torch_xla==2.9.0"),
    "tensorflow": ("tensorflow-cpu",),
    "an older tensorflow": ("tensorflow==2.19.1",),
    "jax": ("jax",),
    "flax": ("flax",),
    "keras on tensorflow": ("keras", "tensorflow-cpu"),
    "keras on jax": ("keras", "jax"),
    "keras on torch": ("keras", "torch"),
    "torch and jax": ("torch", "jax"),
    "tensorflow and jax": ("tensorflow-cpu", "jax"),
    "xgboost": ("xgboost-cpu",),
    "nothing that trains": ("numpy",),
    "a package that nobody knows": ("numpy", "somebody"),
}
# (the image, its option, what was asked for)
IMAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "none": ("", BASE, ()),
    "an image that tells nothing": ("mine:1", IMAGE, ()),
    "a base that tells nothing": ("mine:1", BASE, ()),
    "Python's own": ("python:3.12-slim", BASE, ()),
    "an image for CPUs": ("my/training-cpu:1", IMAGE, ()),
    "an image for GPUs": ("my/training:2-cuda12", IMAGE, ()),
    "the place's own base for CPUs": (CPU, BASE, ()),
    "the place's own base for GPUs": (GPU, BASE, ()),
    "a build for CPUs": ("", BASE, ("torch==2.13.0+cpu",)),
    "a build for GPUs": ("", BASE, ("torch==2.13.0+cu126",)),
    **{f"an image with a label for {kind}s": (f"mine:{kind}", IMAGE, ()) for kind in TITLES},
    "a base with a label for CPUs": ("mine:cpu", BASE, ()),
}
# What their registries say of some.
TOLD = {f"mine:{kind}": {kind: "label of the test"} for kind in TITLES}


def program_of(names: tuple[str, ...], required: tuple[str, ...] = ()) -> Uses:
    lines = tuple(name if "==" in name else f"{name}=={VERSIONS[name]}" for name in names)
    return accelerator_table.uses(lines, required)


def stock(place: str, image: str, option: str) -> Stock:
    if image in (CPU, GPU):
        there = accelerator_table.stock(place).containers
        fitting = [row for row in there if (row.devices, row.framework) == ((image,), "pytorch")]
        image = fitting[0].image
    there = accelerator_table.stock(place, image, option, TODAY)
    return replace(there, devices=TOLD.get(image, {}))


def computes(equipment: Equipment, program: Uses, hardware: Hardware, there: Stock) -> bool:
    """Whether the image or a package of its uses the devices, by their names."""
    row = there.row_of(equipment.image)
    if row and row.framework in program.frameworks and row.fits(hardware):
        return not row.needs or bool(set(row.needs) & program.imports)
    if there.option == IMAGE:
        return hardware.device in there.devices
    lines = (*equipment.requirements, *equipment.required)
    by_name = {
        GPU: r"torch==(?!.*\+cpu)|jax\[cuda12\]|tensorflow\[and-cuda\]|xgboost(?!-)",
        TPU: r"torch[_-]xla\[tpu\]==2\.9|jax\[tpu\]|tensorflow-tpu==2\.(19|20)",
    }
    pattern = by_name.get(hardware.device)
    return bool(pattern) and any(re.match(str(pattern), line) for line in lines)


def outcome(equipment: Equipment) -> str:
    severities = {finding.severity for finding in equipment.findings}
    if Severity.ERROR in severities:
        return "refusal"
    return "finding" if severities else "image"


def is_believed(there: Stock) -> bool:
    return there.named == "mine:1"


def test_what_is_paid_for_is_used_or_refused() -> None:
    """All machines × programs × images."""
    ends: Counter[str] = Counter()
    for (place, hardware), number in kinds().items():
        for names in PROGRAMS.values():
            for image, option, required in IMAGES.values():
                program, there = program_of(names, required), stock(place, image, option)
                equipment = equip(program, hardware, there)
                end = outcome(equipment)
                ends[end] += number
                where = (place, hardware, program, there.named, equipment)
                assert equipment.image, where
                if hardware.device == CPU:
                    assert end != "refusal" or hardware.platform == ARM64, where
                elif end == "image" and not is_believed(there) and program.frameworks:
                    named = there.option == IMAGE and hardware.device == GPU
                    assert named or computes(equipment, program, hardware, there), where
                if hardware.device != CPU and there.devices and option == IMAGE:
                    assert end == "refusal" or hardware.device in there.devices, where
                for finding in equipment.findings:
                    assert finding.where, where
                    assert (
                        hardware.device == CPU
                        or hardware.title in finding.message
                        or (finding.code in ("accelerator.image-ended", "accelerator.note"))
                    ), where
    print(dict(ends))
    assert ends == {"image": 56063, "finding": 33693, "refusal": 17134}


def test_an_image_is_believed_over_its_name() -> None:
    hardware = next(hardware for (_, hardware) in kinds() if hardware.device == GPU)
    program, named = program_of(PROGRAMS["torch"]), stock("vertex", "my/cpu-tools:1", IMAGE)
    codes = [finding.code for finding in equip(program, hardware, named).findings]
    assert codes == ["accelerator.other-image"]
    told = replace(named, devices={GPU: "variable CUDA_VERSION"})
    assert not equip(program, hardware, told).findings


def test_who_has_told_what_an_image_is_for_is_said() -> None:
    hardware = next(hardware for (_, hardware) in kinds() if hardware.device == GPU)
    program, told = program_of(PROGRAMS["torch"]), stock("vertex", "mine:cpu", IMAGE)
    (finding,) = equip(program, hardware, told).findings
    assert finding.severity is Severity.ERROR
    assert "mine:cpu is for CPUs (by its label of the test)" in finding.message
    assert "label distrain-nb.devices=gpu says so" in finding.message
    assert [fix.label for fix in finding.fixes] == ["Leave --image out"]
    (finding,) = equip(program, hardware, replace(told, option=BASE)).findings
    assert finding.severity is Severity.WARNING  # packages are added to it
    (finding,) = equip(program, Hardware(), stock("vertex", "mine:gpu", IMAGE)).findings
    assert finding.severity is Severity.INFO
    assert "(by its label of the test), which no pool has" in finding.message


def test_only_a_registry_can_tell_of_an_image_that_the_place_does_not_know() -> None:
    assert stock("vertex", "mine:1", IMAGE).unidentified == "mine:1"
    assert stock("vertex", "mine:1", BASE).unidentified == "mine:1"
    assert stock("vertex", "python:3.12-slim", IMAGE).unidentified == "python:3.12-slim"
    assert not stock("vertex", "python:3.12-slim", BASE).unidentified
    assert not stock("vertex", GPU, IMAGE).unidentified
    assert not stock("vertex", "", BASE).unidentified


def test_no_machine_is_left_out() -> None:
    devices = Counter[str]()
    for (_, hardware), number in kinds().items():
        devices[hardware.device] += number
    assert set(devices) == {CPU, GPU, TPU, NEURON}
    unknown = {
        name for (_, hardware) in kinds() for name in hardware.names
        if hardware.device == GPU and not hardware.capability
    }  # fmt: skip
    assert not unknown
    assert {h.platform for (_, h) in kinds()} == {AMD64, ARM64}


def test_the_page_is_current() -> None:
    page = accelerator_table.PAGE.read_text(encoding="utf-8")
    assert accelerator_table.current_page() == page, "run: python scripts/accelerator_table.py"
