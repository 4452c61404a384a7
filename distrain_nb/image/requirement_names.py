"""Names of packages in requirements."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from distrain_nb.errors import ImageError
from distrain_nb.program.requirements import public_version
from distrain_nb.secrets import redacted_word


def requirement_name(line: str) -> NormalizedName:
    """Return the package of a requirement such as `numpy>=2`.

    Raises ImageError for a line that is no requirement.
    """
    try:
        return canonicalize_name(Requirement(line.partition(" --")[0]).name)
    except InvalidRequirement:
        shown = redacted_word(line)
        raise ImageError(
            f"invalid requirement {shown!r}: expected one such as numpy or numpy>=2,<3"
        ) from None


def without_local_version(requirement: str) -> str:
    """Remove a local version such as `+cpu` of `torch==2.3.0+cpu`: no public index has it."""
    name, equals, version = requirement.partition("==")
    return f"{name}{equals}{public_version(version)}"
