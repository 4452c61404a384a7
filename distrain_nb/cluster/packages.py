"""The packages with which frameworks use accelerators, where their plain ones do not.

Packages that are the same modules for other hardware, or of other days: each would replace what
another has installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.rows import FrameworkBuild
from distrain_nb.layout.hardware import AMD64, CPU, TITLES, Hardware
from distrain_nb.layout.releases import is_of, older, release
from distrain_nb.program.frameworks import PACKAGES

# The first of a family has the plain name.
_BUILDS = (
    (
        *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel"),
        *("tensorflow-macos", "tensorflow-rocm", "tensorflow-cpu-aws", "intel-tensorflow"),
        *("tensorflow-tpu", "tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
    ),
    ("xgboost", "xgboost-cpu"),
    ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml"),
    ("opencv-python", "opencv-python-headless"),
    ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12"),
    ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
)
# Those that compute on the CPU, whatever the machine has.
CPU_BUILDS = frozenset(
    {"tensorflow-cpu", "tensorflow-intel", "tensorflow-cpu-aws", "intel-tensorflow"}
    | {"tf-nightly-cpu", "xgboost-cpu"}
)


def builds(name: str) -> tuple[str, ...]:
    """Return all names that a package has in its builds for other hardware, its own first."""
    plain = canonicalize_name(name)
    family = next((names for names in _BUILDS if plain in names), (plain,))
    return (plain, *(other for other in family if other != plain))


def plain_name(name: str) -> NormalizedName:
    """Return the plain name of a package that is a build for some hardware; else its own."""
    plain = canonicalize_name(name)
    return canonicalize_name(next((names[0] for names in _BUILDS if plain in names), plain))


_LOCAL = re.compile(r"\+([A-Za-z0-9.]+)")


class Uses(NamedTuple):
    """What a program needs: the frameworks that it trains with, all that it imports, its packages
    as `name==version`, those that were asked for; of the framework whose container was asked for,
    the name and the release."""

    frameworks: tuple[str, ...]
    imports: frozenset[str]
    requirements: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    chosen: str | None = None
    version: str | None = None

    def number(self, framework: str) -> str | None:
        """Return the version of a framework that a requirement pins, or that was asked for."""
        names = builds(PACKAGES.get(framework, framework))
        for line in (*self.required, *self.requirements):
            _, equals, number = line.partition("==")
            number = number.removesuffix(".*")
            if equals and name_of(line) in names and release(number):
                return number
        return self.version if framework == self.chosen else None


class Reason(NamedTuple):
    """Why a framework can't use a device, and what would change that: the import of a module, or an
    option."""

    text: str
    needs: str = ""
    option: str = ""


def unusable_reason(framework: str, uses: Uses, hardware: Hardware) -> Reason | None:
    """Return why the packages of a framework can't use the devices; None if they can, or nobody
    knows."""
    if framework not in PACKAGES:
        return None
    rows, number = _rows(framework, hardware), uses.number(framework)
    if not rows:
        return Reason(f"{framework} has no build for {hardware.title}")
    newest, row = rows[-1], _of_version(rows, number)
    note = f" ({newest.note})" if newest.note else ""
    if newest.needs and not uses.imports & set(newest.needs):
        title = TITLES[hardware.device]
        text = f"{framework} reaches a {title} through {newest.needs[0]}, which is not imported"
        return Reason(f"{text}{note}", newest.needs[0])
    if row is None:
        text = f"{framework} {number} has no build for {hardware.title}{note}"
        return Reason(text, option=_require(newest, number))
    if row.capability and hardware.capability and hardware.capability < row.capability:
        text = (
            f"{framework} {number or 'of today'} as PyPI has it needs GPUs of compute capability "
            f"{row.capability:.1f}, and {hardware.title} has {hardware.capability:.1f}"
        )
        return Reason(text)
    return None


def _require(row: FrameworkBuild, number: str | None) -> str:
    """Return the option that asks for the newest release with a build, where a later one was
    meant."""
    package = PACKAGES[row.framework] if row.needs else row.package
    is_later = row.max_version and older(row.max_version, number)
    return f"--require {package}=={row.max_version}.*" if is_later else ""


def bridge_modules(framework: str, devices: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of which a program has to import one, so that a framework reaches such
    devices; empty where it does so by itself."""
    rows = current().framework_builds.values()
    needs = (row.needs for row in rows if row.framework == framework and row.device in devices)
    return next(needs, ())


def offered(hardware: Hardware) -> tuple[str, ...]:
    """Frameworks that use the devices, each with its package."""
    rows = [row for row in current().framework_builds.values() if _is_for(row, hardware)]
    return tuple(dict.fromkeys(f"{row.framework} as {_package(row)}" for row in rows))


def device_builds(
    uses: Uses, hardware: Hardware, covered: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requirements, and what was asked for, in the builds that use the devices.
    Frameworks that the image brings are `covered`."""
    if hardware.device == CPU:
        return uses.requirements, uses.required
    rows = []
    for framework in uses.frameworks:
        row = _of_version(_rows(framework, hardware), uses.number(framework))
        if row and framework not in covered:
            rows.append(row)
    named = {plain_name(name_of(line)) for line in (*uses.requirements, *uses.required)}
    more = (
        _package(row)
        for row in rows
        if plain_name(row.package) not in named and (not row.needs or uses.imports & set(row.needs))
    )
    return (
        (*(_as_build(line, rows) for line in uses.requirements), *more),
        tuple(_as_build(line, rows) for line in uses.required),
    )


def is_cpu_build(line: str) -> bool:
    """Return whether a requirement names a build that computes on the CPU whatever there is."""
    return name_of(line) in CPU_BUILDS or build_tag(line) == "cpu"


def build_tag(line: str) -> str:
    """`cu121` of `torch==2.3.0+cu121`."""
    match = _LOCAL.search(line)
    return match[1] if match else ""


def plain_requirement(line: str) -> str:
    """`torch==2.3.0` of `torch==2.3.0+cpu`, `tensorflow==2.17.0` of `tensorflow-cpu==2.17.0`."""
    name = name_of(line)
    instead = plain_name(name) if name in CPU_BUILDS else name
    return _LOCAL.sub("", re.sub(r"^[\w.-]+", instead, line))


@lru_cache(maxsize=4096)
def name_of(line: str) -> str:
    """Return the package that a requirement is about; a text that is none stays as it is."""
    try:
        return canonicalize_name(Requirement(line.partition(" --")[0]).name)
    except InvalidRequirement:
        return line


def _rows(framework: str, hardware: Hardware) -> list[FrameworkBuild]:
    rows = current().framework_builds.values()
    return [row for row in rows if row.framework == framework and _is_for(row, hardware)]


def _is_for(row: FrameworkBuild, hardware: Hardware) -> bool:
    named = not row.accelerators or set(hardware.names) <= set(row.accelerators)
    return named and row.device == hardware.device and (row.arm or hardware.platform == AMD64)


def _of_version(rows: Iterable[FrameworkBuild], number: str | None) -> FrameworkBuild | None:
    """Return the row of a version; the newest for one that is not known."""
    fitting = [row for row in rows if number is None or _has(row, number)]
    return fitting[-1] if fitting else None


def _has(row: FrameworkBuild, number: str) -> bool:
    newer = older(row.max_version, number) and not is_of(number, row.max_version)
    return not older(number, row.min_version) and not newer


def _package(row: FrameworkBuild) -> str:
    return f"{row.package}[{row.extra}]" if row.extra else row.package


def _as_build(line: str, rows: Iterable[FrameworkBuild]) -> str:
    family = plain_name(name_of(line))
    for row in rows:
        if family == plain_name(row.package):
            return _rewritten(line, row)
    return line


@lru_cache(maxsize=1024)
def _rewritten(line: str, row: FrameworkBuild) -> str:
    if is_cpu_build(line) and "+" in line:
        return line  # which is refused
    requirement = Requirement(line)
    if name_of(line) in CPU_BUILDS or plain_name(row.package) != canonicalize_name(row.package):
        requirement.name = row.package
    if row.extra:
        requirement.extras = {*requirement.extras, row.extra}
    return str(requirement)


def opaque_packages(uses: Uses) -> Iterator[str]:
    """Yield the packages of a program that may install a framework of their own."""
    for line in (*uses.requirements, *uses.required):
        if name_of(line) not in _ON_THE_CPU:
            yield name_of(line)


# Imported, they compute on the CPU whatever the machine has.
_ON_THE_CPU = frozenset({"numpy", "scipy", "pandas", "matplotlib", "scikit-learn", "pillow"})
