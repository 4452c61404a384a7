"""What a program runs on: an image that can use the accelerators of the pools that train, with the
packages that this takes, or findings that say why there is none.

Whatever nobody can tell is believed: a package that is not in the tables may use any accelerator,
and so may an image of which neither its configuration nor its name says anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from packaging.version import Version

from distrain_nb.cluster import builds, packages, releases
from distrain_nb.cluster.image_devices import LABEL, devices_in_name
from distrain_nb.cluster.packages import Reason, Uses
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.hardware import AMD64, CPU, GPU, TITLES, Hardware
from distrain_nb.layout.releases import is_of
from distrain_nb.program.frameworks import PACKAGES
from distrain_nb.repairs import add_line, add_option, with_option, write_option

BASE, IMAGE = "base", "image"
# The empty image, as Dockerfiles name it.
SCRATCH = "scratch"

# Python's own images, on which every package is added.
_BARE = re.compile(r"(?:^|/)python:[\w.-]+$")


@dataclass(frozen=True)
class Container:
    """An image that a place offers for a framework on some kinds of devices.

    `accelerators` limits it to these. `needs` are modules of which the program has to import one.
    `ends` is the date (ISO) after which the place may have removed it. `note` is the remark
    about a job that runs in it.
    """

    image: str
    framework: str
    version: str
    devices: tuple[str, ...]
    accelerators: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ends: str = ""
    note: str = ""

    def fits(self, hardware: Hardware) -> bool:
        """Return whether it was made for these devices."""
        named = not self.accelerators or set(hardware.names) <= set(self.accelerators)
        return named and hardware.device in self.devices and hardware.platform == AMD64


@dataclass(frozen=True)
class Stock:
    """The images to choose from: what a place offers, and `bare`, on which everything is added;
    empty where there is none.

    `named` is the image that the user has named by the option `option`, BASE or IMAGE. `today`
    (ISO) is empty where nobody asks what has ended. `devices` are those that the named image is
    for, each with what tells it in its configuration; empty where nothing tells it. With `archive`
    a container installs the program, and brings the framework. With `bare_processes` a job on the
    empty image runs as processes of this machine's Python, as a rehearsal can.
    """

    containers: tuple[Container, ...]
    bare: str
    named: str = ""
    option: str = BASE
    today: str = ""
    devices: Mapping[str, str] = field(default_factory=dict)
    archive: bool = False
    bare_processes: bool = False

    @property
    def unidentified(self) -> str:
        """The named image, if only its registry can tell what it is for; empty if there is none."""
        bare = self.named == SCRATCH or (self.option == BASE and _BARE.search(self.named))
        return "" if bare or self.row_of(self.named) else self.named

    def row_of(self, image: str) -> Container | None:
        """Return the row of an image that the place offers, in whichever region."""
        return next((row for row in self.containers if row.image == image), None)

    def has_ended(self, row: Container) -> bool:
        """Return whether the place may have removed a container."""
        return bool(row.ends) and self.today > row.ends


@dataclass(frozen=True)
class Equipment:
    """The image (empty if there is none), and the packages that the program needs beside those of
    the image. An error among the findings means that no image would use the devices."""

    image: str
    requirements: tuple[str, ...]
    required: tuple[str, ...]
    platform: str
    findings: tuple[Finding, ...]


def equip(uses: Uses, hardware: Hardware, stock: Stock) -> Equipment:
    """Choose the image and the packages with which a program uses the devices that are paid for, in
    the release of its framework that was asked for."""
    if stock.named == SCRATCH:
        return Equipment(SCRATCH, (), (), hardware.platform, (_about_scratch(stock),))
    is_image = bool(stock.named) and stock.option == IMAGE
    is_own = is_image or bool(stock.named and not _BARE.search(stock.named))
    row = stock.row_of(stock.named) if is_own else None
    if not stock.named:
        row = _container(uses, hardware, stock)
    image = stock.named or (row.image if row else stock.bare)
    findings = (*_about_release(row, uses, hardware, stock, image),)
    if not (is_image or (row and row.framework == uses.chosen)):
        uses = releases.pinned(uses)
    if is_own:
        findings += (*_about_named(row, uses, hardware, stock),)
        if row and row.framework not in uses.frameworks and not is_image:
            findings += (*_about_frameworks(None, uses, hardware, stock),)
    elif not findings:
        findings = (*_about_frameworks(row, uses, hardware, stock),)
    covered = (row.framework,) if row else ()
    added = packages.device_builds(uses, hardware, covered)
    problems = (*findings, *_about_container(row, uses, hardware, stock),
             *_about_required(uses, hardware))  # fmt: skip
    asked = (uses.requirements, uses.required) if is_image else added
    return Equipment(image, *asked, hardware.platform, problems)


def _container(uses: Uses, hardware: Hardware, stock: Stock) -> Container | None:
    """Return the newest of the framework that was asked for, or else for the first of the program's
    that the place has one for. Once all of them have ended, one is only taken if the framework's
    packages can't do without: None means that they are installed."""
    for framework in (uses.chosen,) if uses.chosen else uses.frameworks:
        fitting = _fitting(framework, uses.version, hardware, stock)
        current = [row for row in fitting if not stock.has_ended(row)]
        if current:
            return max(current, key=lambda row: Version(row.version))
        if fitting and not _installable(framework, uses, hardware, stock):
            return max(fitting, key=lambda row: Version(row.version))
        if fitting:
            return None
    return None


def _fitting(
    framework: str | None, number: str | None, hardware: Hardware, stock: Stock
) -> list[Container]:
    return [
        row
        for row in stock.containers
        if row.framework == framework and row.fits(hardware) and is_of(row.version, number)
    ]


def _installable(framework: str, uses: Uses, hardware: Hardware, stock: Stock) -> bool:
    """Return whether packages of a framework serve the devices as well as a container would."""
    if stock.archive or not stock.bare or framework not in PACKAGES:
        return False
    if uses.version and releases.missing_wheels(uses, stock.bare):
        return False
    unusable = packages.unusable_reason(framework, releases.pinned(uses), hardware)
    return hardware.device == CPU or unusable is None


# -- what is wrong --------------------------------------------------------------------------------


def _about_release(
    row: Container | None, uses: Uses, hardware: Hardware, stock: Stock, image: str
) -> Iterator[Finding]:
    """Yield an error where the job would not get the release of a framework that was asked for."""
    if not uses.version or not uses.chosen:
        return
    asked, line = f"{uses.chosen} {uses.version}", releases.contradicting(uses)
    if line:
        message = f"--framework asks for {asked}, --require for {line}: leave one of the two out"
        yield _release_finding(message, _without("require"), _without("framework"))
    if row and row.framework == uses.chosen:
        if not releases.agree(row.version, uses.version):
            message = (
                f"{row.image} has {row.framework} {row.version}, and --framework asks for "
                f"{uses.version}: leave one of the two out"
            )
            yield _release_finding(message, _without(stock.option), _without("framework"))
        return
    if stock.named and (stock.option == IMAGE or not _BARE.search(stock.named)):
        return
    reason = "" if stock.archive else releases.missing_wheels(uses, image)
    if not reason and not stock.archive:
        return
    there = sorted((r.version for r in _fitting(uses.chosen, None, hardware, stock)), key=Version)
    short = dict.fromkeys(".".join(number.split(".")[:2]) for number in there)
    containers = f"containers have {', '.join(short)}" if there else "no container has it"
    message = f"{asked} is not available for a {hardware.title} here: {containers}"
    if reason:
        message += f"; {reason}"
    first = releases.first_wheels(uses.chosen, releases.python_in(image))
    other = there[-1] if there else "" if stock.archive else first
    yield _release_finding(message, *_take(uses.chosen, other))


def _take(framework: str, number: str) -> Iterable[Fix[str]]:
    if number:
        option = f"--framework {framework}-{number}"
        yield Fix(f"Take {option}", lambda cell: with_option(cell, ["--framework"], option))


def _release_finding(message: str, *fixes: Fix[str]) -> Finding:
    return Finding("framework.release", Severity.ERROR, "framework", message, fixes)


def _about_scratch(stock: Stock) -> Finding:
    """Return what it means to run on the empty image: an error where nothing can."""
    if stock.bare_processes and stock.option == BASE:
        message = (
            "on scratch, replicas run as processes of this machine's Python with its packages: "
            "nothing is fetched, and --require installs nothing"
        )
        return Finding("image.scratch", Severity.INFO, BASE, message)
    message = (
        f"{SCRATCH} is the empty image, without Python: only rehearsals that can run processes of "
        "this machine take it; name another image"
    )
    fix = _without(stock.option)
    return Finding("image.scratch", Severity.ERROR, stock.option, message, (fix,))


def _about_named(
    row: Container | None, uses: Uses, hardware: Hardware, stock: Stock
) -> Iterator[Finding]:
    """Yield an image that is for other devices; one that tells nothing of itself is believed."""
    reasons = {} if row else stock.devices
    kinds = frozenset(row.devices if row else reasons) or devices_in_name(stock.named)
    if row and hardware.platform != AMD64:
        message = f"{stock.named} is for {AMD64}, and machines with {hardware.title} are Arm"
        yield _finding("platform", Severity.ERROR, stock.option, message, _without(stock.option))
    if not kinds or hardware.device in kinds:
        return
    titles = " and ".join(f"{TITLES[kind]}s" for kind in sorted(kinds))
    by = f" (by its {', '.join(reasons[kind] for kind in sorted(reasons))})" if reasons else ""
    if hardware.device == CPU:
        message = (
            f"{stock.named} is for {titles}{by}, which no pool has: it is larger than one for "
            "CPUs, and takes longer to fetch"
        )
        yield _finding("needless-image", Severity.INFO, stock.option, message)
    elif not row or row.framework in uses.frameworks or stock.option == IMAGE:
        message = (
            f"{stock.named} is for {titles}{by}: the {hardware.title} of the pool would be paid "
            f"for and not used; leave --{stock.option} out, or name an image for it"
        )
        if reasons:
            message += f"; if it uses it, its label {LABEL}={hardware.device} says so"
        # Packages are added to a base, and may use what those that it has do not.
        is_sure = row or (reasons and stock.option == IMAGE)
        severity = Severity.ERROR if is_sure else Severity.WARNING
        yield _finding("other-image", severity, stock.option, message, _without(stock.option))


def _about_frameworks(
    row: Container | None, uses: Uses, hardware: Hardware, stock: Stock
) -> Iterator[Finding]:
    """Yield an error where none of the program's frameworks can use the devices, a warning where it
    has none, nor anything that may bring one."""
    if hardware.device == CPU or row:
        return
    if not uses.frameworks:
        if not any(packages.opaque_packages(uses)):
            message = f"the program imports nothing that is known to use a {hardware.title}"
            yield _finding("no-framework", Severity.WARNING, hardware.where, message)
        return
    reasons = [packages.unusable_reason(name, uses, hardware) for name in uses.frameworks]
    failed = [reason for reason in reasons if reason]
    if len(failed) == len(reasons):
        yield _unused(failed[0], hardware, stock)


def _about_container(
    row: Container | None, uses: Uses, hardware: Hardware, stock: Stock
) -> Iterator[Finding]:
    if row is None or not row.fits(hardware):
        return
    if row.needs and not uses.imports & set(row.needs):
        text = f"{row.framework} reaches a {hardware.title} through {' or '.join(row.needs)}"
        note = f" ({row.note})" if row.note else ""
        reason = packages.Reason(f"{text}, which is not imported{note}", row.needs[0])
        yield _unused(reason, hardware, stock)
    elif row.note:
        yield _finding("note", Severity.WARNING, BASE, f"{row.image}: {row.note}")
    if stock.has_ended(row):
        message = f"{row.image} may be gone: its end of availability was {row.ends}"
        other = stock.bare if _installable(row.framework, uses, hardware, stock) else ""
        if other:
            message += (
                f"; on --base {other}, the notebook's own {row.framework} is installed instead"
            )
        yield _finding("image-ended", Severity.WARNING, BASE, message, *_on(other))


def _unused(reason: Reason, hardware: Hardware, stock: Stock) -> Finding:
    images = [row.image for row in stock.containers if row.fits(hardware)]
    there = [*packages.offered(hardware), *images[-3:]]
    listed = f"There is {', '.join(there)}; " if there else ""
    message = (
        f"{reason.text}: the {hardware.title} would be paid for and not used. {listed}--base names "
        "an image of your own that uses it"
    )
    fixes = (
        *([add_line(f"import {reason.needs}")] if reason.needs else ()),
        *([add_option(reason.option)] if reason.option else ()),
    )
    return _finding("unused", Severity.ERROR, hardware.where, message, *fixes)


def _about_required(uses: Uses, hardware: Hardware) -> Iterator[Finding]:
    """Yield findings about required packages that are builds for other devices."""
    for line in uses.required:
        plain = builds.plain_requirement(line)
        if hardware.device == GPU and builds.is_cpu_build(line):
            message = (
                f"{line} computes on the CPU: the {hardware.title} would be paid for and not used; "
                f"ask for {plain}"
            )
            fix = write_option(line, plain)
            yield _finding("cpu-build", Severity.ERROR, f"--require {line}", message, fix)
        elif hardware.device == CPU and builds.build_tag(line).startswith("cu"):
            message = f"{line} is built for GPUs, which no pool has; ask for {plain}"
            yield _finding("needless-build", Severity.INFO, f"--require {line}", message)


def _on(base: str) -> Iterable[Fix[str]]:
    if base:
        yield Fix(
            f"Take --base {base}", lambda cell: with_option(cell, ["--base"], f"--base {base}")
        )


def _without(option: str) -> Fix[str]:
    return Fix(f"Leave --{option} out", lambda cell: with_option(cell, [f"--{option}"], ""))


def _finding(code: str, severity: Severity, where: str, message: str, *fixes: Fix[str]) -> Finding:
    return Finding(f"accelerator.{code}", severity, where, message, fixes)
