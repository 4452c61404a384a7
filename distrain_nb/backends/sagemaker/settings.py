"""Where a job goes on AWS: region, bucket, role and the repository of its images.

Each setting is looked for in the options, in `%distrain config`, in the environment, in the files
of the AWS CLI, and in the file with which SageMaker Studio describes itself, in this order.
"""

from __future__ import annotations

import configparser
import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.sagemaker.names import ACCOUNT
from distrain_nb.backends.sagemaker.regions import partition_of, partitions, regions
from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.sagemaker.options import SageMakerJob

VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
STUDIO_FILE = Path("/opt/ml/metadata/resource-metadata.json")

# A rehearsal needs no account, so what nobody has chosen is made up.
REHEARSED = {
    "region": "us-east-1",
    "bucket": "rehearsal",
    "role": "arn:aws:iam::123456789012:role/rehearsal",
}

REGION_FORM = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d+")
REPOSITORY_FORM = re.compile(r"(?:\d{12}|\$\{ACCOUNT\})\.dkr\.ecr\.[\w-]+\.(?P<domain>[\w.-]+)/.+")


@dataclass(frozen=True)
class Settings:
    """Settings of a job; an empty text is one that nobody has made.

    `bucket` is a name without `s3://`, `role` an ARN, `repository` where images are pushed to. The
    number of the account, where nobody has named it, is `ACCOUNT`.
    """

    region: str
    bucket: str
    role: str
    repository: str

    @property
    def folder(self) -> str:
        """What the folders of all runs are below, as `s3://…`."""
        return f"s3://{self.bucket or 'BUCKET'}/distrain"


def settings_of(job: SageMakerJob) -> Settings:
    """The settings that hold for a job, whose `defaults` are those of AWS's and Studio's files."""
    region = _region(job)
    partition = partition_of(region)
    home = f"{ACCOUNT}.dkr.ecr.{region}.{partition.domain}/distrain" if region else ""
    arn = f"arn:{partition.name}:iam::{ACCOUNT}:role"
    bucket = _setting(job, "bucket") or (f"sagemaker-{region}-{ACCOUNT}" if region else "")
    role = _setting(job, "role")
    return Settings(
        region=region,
        bucket=bucket.removeprefix("s3://").strip("/"),
        role=f"{arn}/{role}" if role and ":" not in role else role,
        repository=_setting(job, "repository") or home,
    )


def wrong(settings: Settings, *, rehearsed: bool) -> Iterator[Finding]:
    """An error for each setting that is missing, with the ways to make it, or is no setting of
    AWS's."""
    if not settings.region:
        yield _error("no-region", "region", "no region is set: " + _ways("region", "us-east-1"))
    elif not REGION_FORM.fullmatch(settings.region):
        message = f"{settings.region!r} is not an AWS region: write one such as --region us-east-1"
        yield _error("region", "region", message)
    elif regions() and settings.region not in regions():
        yield _unknown(settings.region)
    if not settings.role:
        yield _error("no-role", "role", "no role is set: " + _ways("role", "my-training-role"))
    if "/" in settings.bucket:
        message = f"{settings.bucket!r} is not a bucket: write its name alone, without a path"
        yield _error("bucket", "bucket", message)
    if settings.repository and not rehearsed and not _is_amazon(settings.repository):
        message = (
            f"SageMaker takes images from Amazon ECR only, and {settings.repository} is elsewhere: "
            "write --repository ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME, or leave it out"
        )
        yield _error("repository", "repository", message)


def _unknown(region: str) -> Finding:
    """It may be new: boto3 would find its way there."""
    close = " or ".join(get_close_matches(region, sorted(regions()), 2))
    asking = f"; did you mean {close}?" if close else ""
    message = f"botocore {version('botocore')} knows of no SageMaker in {region!r}{asking}"
    return Finding("sagemaker.unknown-region", Severity.WARNING, "region", message)


def _is_amazon(repository: str) -> bool:
    found = REPOSITORY_FORM.match(repository)
    return found is not None and found["domain"] in {each.domain for each in partitions()}


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.ERROR, where, message)


def _ways(name: str, example: str) -> str:
    ways = [f"write --{name} {example}", f"keep it with %distrain config {name}={example}"]
    if name == "region":
        ways.append(f"set the variable {VARIABLES[0]}")
        ways.append(f"run aws configure set region {example}")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def of_files(environ: Mapping[str, str]) -> dict[str, str]:
    """The region of the AWS CLI's active profile, or of the space of Studio that the notebook runs
    in, and the role of that space."""
    studio = _studio()
    region = _of_profile(environ) or _of_arn(studio.get("ResourceArn", ""))
    return {"region": region, "role": studio.get("ExecutionRoleArn", "")}


def _setting(job: SageMakerJob, name: str) -> str:
    """As chosen or kept, else what was found, else made up for a rehearsal."""
    made_up = REHEARSED.get(name, "") if job.options.rehearsed else ""
    return str(getattr(job.options, name) or job.defaults.get(name) or made_up)


def _region(job: SageMakerJob) -> str:
    return (
        job.layout.region
        or job.config.region
        or next(filter(None, map(job.environ.get, VARIABLES)), "")
        or job.defaults.get("region", "")
        or (REHEARSED["region"] if job.options.rehearsed else "")
    )


def _of_profile(environ: Mapping[str, str]) -> str:
    """The region of the profile that is active in the AWS CLI's configuration."""
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    file = environ.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config"
    profiles = configparser.ConfigParser(interpolation=None)
    try:
        profiles.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):  # the CLI says so itself, and better
        return ""
    sections = ("default", "profile default") if name == "default" else (f"profile {name}",)
    found = (profiles.get(section, "region", fallback="") for section in sections)
    return next(filter(None, found), "")


def _studio() -> dict[str, str]:
    """What Studio tells of the space that the notebook runs in; empty elsewhere."""
    try:
        found = json.loads(STUDIO_FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _of_arn(arn: str) -> str:
    parts = arn.split(":")
    return parts[3] if len(parts) > 3 else ""


def login_of(environ: Mapping[str, str]) -> str:
    """The credentials of AWS's own tools, by what names them or their file; empty if none."""
    variables = (
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_PROFILE",
    )
    named = next(filter(environ.get, variables), "")
    if named:
        return f"the variable {named}"
    kept = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws/credentials")
    return str(kept) if kept.exists() else ""
