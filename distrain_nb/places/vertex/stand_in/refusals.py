"""Messages with which the service refuses a request."""

from __future__ import annotations

from distrain_nb.rehearsal.failures import ApiError


def invalid(text: str) -> ApiError:
    """Make the error for a request that is wrong itself."""
    return ApiError("INVALID_ARGUMENT", text)


def not_found(name: str) -> ApiError:
    """Make the error for a name that doesn't exist."""
    return ApiError("NOT_FOUND", f"The resource {name} is not found.")


def quota_exceeded(metric: str, words: str = "") -> ApiError:
    """Make the error for a quota that is used up."""
    if words:
        return ApiError(
            "RESOURCE_EXHAUSTED", f"Quota exceeded for quota metric '{words}' ({metric})."
        )
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/{metric}",
    )


def denied(permission: str, parent: str) -> ApiError:
    """Make the error for what the caller may not do."""
    return ApiError(
        "PERMISSION_DENIED",
        f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{parent}' "
        "(or it may not exist).",
    )
