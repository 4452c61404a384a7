"""Messages with which the service refuses a request."""

from __future__ import annotations

from distrain_nb.rehearsal.errors import ApiError


def invalid(text: str) -> ApiError:
    """Return the request itself is wrong."""
    return ApiError("INVALID_ARGUMENT", text)


def not_found(name: str) -> ApiError:
    """Make the error for a name that doesn't exist."""
    return ApiError("NOT_FOUND", f"The resource {name} is not found.")


def quota_exceeded(metric: str, words: str = "") -> ApiError:
    """Return a quota is used up."""
    if words:
        return ApiError(
            "RESOURCE_EXHAUSTED", f"Quota exceeded for quota metric '{words}' ({metric})."
        )
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/{metric}",
    )


def denied(permission: str, parent: str) -> ApiError:
    """Return the caller may not do this."""
    return ApiError(
        "PERMISSION_DENIED",
        f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{parent}' "
        "(or it may not exist).",
    )
