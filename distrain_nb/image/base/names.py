"""Names and versions of Python packages, as a base and a program have to agree on them."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from distrain_nb.errors import ImageError
from distrain_nb.program.requirements import public_version
from distrain_nb.secrets import without_secret


def without_local_version(requirement: str) -> str:
    """Remove a local version, which no public index has: `+cpu` of `torch==2.3.0+cpu`."""
    name, equals, version = requirement.partition("==")
    return f"{name}{equals}{public_version(version)}"


def requirement_name(line: str) -> NormalizedName:
    """Return the package that a requirement such as `numpy>=2` is about. Raises ImageError for
    none."""
    try:
        return canonicalize_name(Requirement(line.partition(" --")[0]).name)
    except InvalidRequirement:
        shown = without_secret(line)
        raise ImageError(
            f"invalid requirement {shown!r}: expected one such as numpy or numpy>=2,<3"
        ) from None
