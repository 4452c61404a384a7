"""The packages with which frameworks use accelerators, where their plain ones do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from distrain_nb.cluster.builds import CPU_BUILDS, builds, is_cpu_build, name_of, plain_name
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.rows import FrameworkBuild
from distrain_nb.layout.hardware import AMD64, CPU, TITLES, Hardware
from distrain_nb.layout.releases import is_of, older, release
from distrain_nb.program.frameworks import PACKAGES

# Imported, they compute on the CPU whatever the machine has.
_ON_THE_CPU = frozenset({"numpy", "scipy", "pandas", "matplotlib", "scikit-learn", "pillow"})


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
