"""What the service says when it turns a request down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Refused(Exception):
    """A call that fails: the name of a gRPC status, and the service's words."""

    code: str
    text: str


def invalid(text: str) -> Refused:
    """The request itself is wrong."""
    return Refused("INVALID_ARGUMENT", text)


def missing(name: str) -> Refused:
    """There is nothing of that name."""
    return Refused("NOT_FOUND", f"The resource {name} is not found.")


def exhausted(metric: str, words: str = "") -> Refused:
    """A quota is used up."""
    if words:
        return Refused(
            "RESOURCE_EXHAUSTED", f"Quota exceeded for quota metric '{words}' ({metric})."
        )
    return Refused(
        "RESOURCE_EXHAUSTED",
        f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/{metric}",
    )


def denied(permission: str, parent: str) -> Refused:
    """The caller may not do this."""
    return Refused(
        "PERMISSION_DENIED",
        f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{parent}' "
        "(or it may not exist).",
    )
