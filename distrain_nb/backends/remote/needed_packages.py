"""The packages that a program needs where it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from distrain_nb.program.frameworks import PACKAGES


class PackageNeeds(Protocol):
    """Something that needs packages.

    `requirements` are packages that the notebook has, as `name==version`. `required` are those that
    the user asked for.
    """

    @property
    def requirements(self) -> tuple[str, ...]: ...

    @property
    def required(self) -> tuple[str, ...]: ...


def packages_to_install(program: PackageNeeds, there: Sequence[str]) -> Iterator[str]:
    """Yield the packages that a container of the service installs for a program.

    A package that the user asked for keeps its version. All others lose the notebook's version,
    which the container's Python may not have. A package that is *there* stays, also in a build for
    other hardware, unless the user asked for it.
    """
    from packaging.requirements import Requirement

    from distrain_nb.cluster.builds import builds
    from distrain_nb.image.requirement_names import requirement_name

    taken = {*there, *map(requirement_name, program.required)}
    for line in program.requirements:
        if taken.isdisjoint(builds(requirement_name(line))):
            requirement = Requirement(line)
            # `==2.18.*` is a release that the user asked for, not the notebook's version.
            pinned = [item.operator for item in requirement.specifier] == ["=="] and not str(
                requirement.specifier
            ).endswith(".*")
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            yield f"{requirement.name}{extras}" if pinned else line
    yield from program.required


def packages_in_image(program: PackageNeeds, framework: str | None) -> Iterator[str]:
    """Yield the packages that are added to an image, and the framework that the image keeps.

    A base keeps its own framework unless the user asked for another one.
    """
    from distrain_nb.cluster.builds import builds
    from distrain_nb.image.requirement_names import requirement_name

    package = PACKAGES.get(framework or "", "")
    required = {build for line in program.required for build in builds(requirement_name(line))}
    for line in program.requirements:
        names = builds(requirement_name(line))
        if not required.isdisjoint(names):
            continue
        yield f"{package}: the image's own" if package in names else line
    yield from program.required
