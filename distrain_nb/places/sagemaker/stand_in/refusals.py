"""Messages with which the service refuses a request."""

from __future__ import annotations

from pathlib import Path

from distrain_nb.rehearsal.failures import ApiError

# Whom moto's STS says that every caller is.
ACCOUNT = "123456789012"
CALLER = f"arn:aws:sts::{ACCOUNT}:user/moto"

INTERNAL = "InternalServerError"


def invalid(text: str) -> ApiError:
    """Make the error for a request that is wrong itself."""
    return ApiError("ValidationException", text)


def not_found() -> ApiError:
    """Make the error for a training job that doesn't exist."""
    return invalid("Requested resource not found.")


def taken(arn: str) -> ApiError:
    """Make the error for the name of an earlier training job."""
    return ApiError(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job "
        f"with this name already exists ({arn})",
    )


def no_tuning_job(name: str) -> ApiError:
    """Make the error for a tuning job that doesn't exist."""
    return ApiError("ResourceNotFound", f"Amazon SageMaker can't find a tuning job {name}.")


def tuning_job_taken(arn: str) -> ApiError:
    """Make the error for the name of an earlier tuning job."""
    return ApiError(
        "ResourceInUse",
        "Tuning job names must be unique within an AWS account and region, and a tuning job with "
        f"this name already exists ({arn})",
    )


def quota_exceeded(limit: str, instances: int) -> ApiError:
    """Make the error for a quota that is used up."""
    return ApiError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{limit} for training job usage' is 0 Instances, with "
        f"current utilization of 0 Instances and a request delta of {instances} Instances. "
        "Please use AWS Service Quotas to request an increase for this quota. If AWS Service "
        "Quotas is not available, contact AWS support to request an increase for this quota.",
    )


def denied(action: str, resource: str) -> ApiError:
    """Make the error for what the caller may not do."""
    return ApiError("AccessDeniedException", denial(action, resource))


def denial(action: str, resource: str) -> str:
    """Write AWS's message that the caller may not do this."""
    return (
        f"User: {CALLER} is not authorized to perform: {action} on resource: {resource} because "
        f"no identity-based policy allows the {action} action"
    )


def role_not_assumed(role: str) -> ApiError:
    """Make the error for a role that SageMaker may not act in."""
    return invalid(
        f"Could not assume role {role}. Please ensure that the role exists and allows principal "
        "'sagemaker.amazonaws.com' to assume the role."
    )


def no_objects(
    uri: str, region: str, role: str, bucket: str, folder: Path, message: str
) -> ApiError:
    """Make the error for a place in S3 without objects, or one that the role may not list.

    `folder` stands for the bucket.
    """
    return invalid(
        f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure '
        f"that the bucket exists in the selected region ({region}), that objects exist under "
        f'that S3 prefix, and that the role "{role}" has "s3:ListBucket" permissions on bucket '
        f'"{bucket}".'
        + (f' Error message from S3: "{message}"' if message else "")
        + f" In a rehearsal, the files below {folder} are the bucket's objects: "
        "put some there."
    )
