"""The bucket and the repository that are made for a job whose user has named none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from distrain_nb.places.sagemaker.client import code_of, plain_words

if TYPE_CHECKING:
    from botocore.client import BaseClient


# The one region that has no name where buckets are made.
_UNNAMED = "us-east-1"


def make_bucket(s3: BaseClient, name: str, region: str, account: str) -> None:
    """Unless the account has it. Raises DistrainError if that is not allowed, and where somebody
    else has a bucket of that name: nothing is to go there."""
    place = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    with plain_words(f"make the bucket {name}"):
        try:
            s3.head_bucket(Bucket=name, ExpectedBucketOwner=account)
        except ClientError as error:
            if code_of(error) not in ("404", "NoSuchBucket"):
                raise
            s3.create_bucket(Bucket=name, **({} if region == _UNNAMED else place))


def make_repository(ecr: BaseClient, name: str) -> None:
    """Raise DistrainError if that is not allowed."""
    with plain_words(f"make the repository {name} in Amazon ECR"):
        try:
            ecr.describe_repositories(repositoryNames=[name])
        except ClientError as error:
            if code_of(error) != "RepositoryNotFoundException":
                raise
            ecr.create_repository(repositoryName=name)
