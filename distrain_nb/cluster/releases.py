"""The release of a framework that the user asked for: where it is installed, and in which line.

PyPI has wheels of a release only for the versions of Python that it was built for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement

from distrain_nb.cluster.builds import name_of, plain_name
from distrain_nb.cluster.packages import Uses
from distrain_nb.layout.releases import older, release
from distrain_nb.program.frameworks import PACKAGES

# The first release on PyPI with a wheel for that Python; PyPI, 2026-11-29. Of a Python or
# framework that is not listed nobody knows.
_FIRST_WHEELS: Mapping[str, Mapping[str, str]] = {
    "pytorch": {"3.10": "1.11", "3.11": "1.13", "3.12": "2.2", "3.13": "2.5", "3.14": "2.9"},
    "tensorflow": {"3.10": "2.8", "3.11": "2.12", "3.12": "2.16", "3.13": "2.20"},
}
# Packages of which a release is for one release of the framework: the notebook's version of them
# would not go with another one.
_RELEASED_TOGETHER: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("torchvision", "torchaudio", "torchtext", "torchdata", "torch-xla"),
    "tensorflow": ("keras", "tf-keras", "tensorflow-text", "tensorflow-io", "tensorboard"),
    "jax": ("jaxlib",),
}

_PYTHON = re.compile(r"python:(\d+\.\d+)")


def python_in(image: str) -> str:
    """Return the Python of one of Python's own images, as `3.11`; empty if its name has none."""
    match = _PYTHON.search(image)
    return match[1] if match else ""


def first_wheels(framework: str, python: str) -> str:
    """Return the first release of a framework with wheels for a Python; empty if nobody knows."""
    return _FIRST_WHEELS.get(framework, {}).get(python, "")


def missing_wheels(uses: Uses, image: str) -> str:
    """Return why PyPI has no wheels of the asked release for the Python of an image; empty if it
    may have."""
    framework, number = uses.chosen or "", uses.version
    if framework not in PACKAGES:
        return f"no package of {framework} is known that could be installed instead"
    python = python_in(image)
    first = first_wheels(framework, python)
    if first and older(number, first):
        return f"PyPI has {PACKAGES[framework]} for Python {python} from {first} on"
    return ""


def contradicting(uses: Uses) -> str:
    """Return the required line that pins another release than the asked one; empty if none does."""
    package = PACKAGES.get(uses.chosen or "")
    for line in uses.required:
        if package and plain_name(name_of(line)) == package and uses.version:
            pins = [item for item in Requirement(line).specifier if item.operator == "=="]
            if not all(agree(item.version.removesuffix(".*"), uses.version) for item in pins):
                return line
    return ""


def agree(one: str, other: str) -> bool:
    """Return whether two numbers may be of one release: 2.4 and 2.4.1 may, 2.4.0 and 2.4.1 not."""
    first, second = release(one), release(other)
    if first is None or second is None:
        return one == other
    return all(a == b for a, b in zip(first.release, second.release, strict=False))


def pinned(uses: Uses) -> Uses:
    """Return what the program needs with the asked release in the place of the notebook's."""
    package = PACKAGES.get(uses.chosen or "")
    if not package or not uses.version:
        return uses
    return uses._replace(
        requirements=tuple(_with_release(uses, package)),
        required=tuple(_narrowed(line, package, uses.version) for line in uses.required),
    )


def _with_release(uses: Uses, package: str) -> Iterator[str]:
    together = _RELEASED_TOGETHER.get(uses.chosen or "", ())
    names = {plain_name(name_of(line)) for line in (*uses.requirements, *uses.required)}
    for line in uses.requirements:
        name = name_of(line)
        if plain_name(name) == package:
            yield f"{name}=={uses.version}.*"
        else:
            yield name if name in together else line
    if package not in names:
        yield f"{package}=={uses.version}.*"


def _narrowed(line: str, package: str, number: str) -> str:
    """Return a required line that leaves the release open with that release."""
    if plain_name(name_of(line)) != package:
        return line
    requirement = Requirement(line)
    if any(item.operator in ("==", "===") for item in requirement.specifier):
        return line
    requirement.specifier &= f"=={number}.*"
    return str(requirement)
