"""Where a job goes on AWS: region, bucket, role and the repository of its images.

Each setting is looked for in the options, in `%distrain config`, in the environment, in the files
of the AWS CLI and of SageMaker's SDK, and in what SageMaker Studio tells of the space, in this
order.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.settings import SettingValue, first_of_each, text_of, ways_to_set
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.sagemaker import studio
from distrain_nb.places.sagemaker.names import ACCOUNT
from distrain_nb.places.sagemaker.regions import partition_of, partitions, regions
from distrain_nb.places.sagemaker.sdk_config import sdk_settings

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.options import SageMakerJob

VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
OWN_NAME = "SageMaker's own name for it"

# A rehearsal needs no account, so what nobody has chosen is made up.
REHEARSED = {
    "region": "us-east-1",
    "bucket": "rehearsal",
    "role": "arn:aws:iam::123456789012:role/rehearsal",
}

_NONE = SettingValue("", "")

# What an administrator may have set besides, as options have it.
_MORE = ("base", "subnet", "security_group", "label", "env", "isolate", "encrypt")
_JOINED = ("label", "env")

REGION_FORM = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d+")
REPOSITORY_FORM = re.compile(r"(?:\d{12}|\$\{ACCOUNT\})\.dkr\.ecr\.[\w-]+\.(?P<domain>[\w.-]+)/.+")


@dataclass(frozen=True)
class Settings:
    """Settings of a job; an empty text is one that nobody has made.

    `bucket` is a name without `s3://`, `prefix` a folder in it that all is below, `role` an ARN,
    `repository` where images are pushed to; `output_key` and `volume_key` encrypt what the job
    writes and its volumes. The number of the account, where nobody has named it, is `ACCOUNT`.
    """

    region: str
    bucket: str
    prefix: str
    role: str
    repository: str
    output_key: str
    volume_key: str

    @property
    def below(self) -> str:
        """The folder of all runs in the bucket."""
        return f"{self.prefix}/distrain" if self.prefix else "distrain"

    @property
    def folder(self) -> str:
        """What the folders of all runs are below, as `s3://…`."""
        return f"s3://{self.bucket or 'BUCKET'}/{self.below}"


def settings_of(job: SageMakerJob) -> Settings:
    """Return the settings that hold for a job."""
    texts = text_settings(job)
    region, role = str(texts["region"].value), str(texts["role"].value)
    arn = f"arn:{partition_of(region).name}:iam::{ACCOUNT}:role"
    return Settings(
        region=region,
        bucket=str(texts["bucket"].value).removeprefix("s3://").strip("/"),
        prefix=str(texts["prefix"].value).strip("/"),
        role=f"{arn}/{role}" if role and ":" not in role else role,
        repository=str(texts["repository"].value),
        output_key=str(texts["output_key"].value),
        volume_key=str(texts["volume_key"].value),
    )


def text_settings(job: SageMakerJob) -> dict[str, SettingValue]:
    """Return the same, each with where it comes from; what nobody has made is empty."""
    region = _text(job, "region", VARIABLES)
    names = _own_names(str(region.value))
    bucket, repository = _text(job, "bucket"), _text(job, "repository")
    key = _text(job, "kms_key")
    kept_prefix = bucket == job.defaults.get("bucket") or not bucket.value
    return {
        "region": region,
        "role": _text(job, "role"),
        "bucket": bucket if bucket.value else names["bucket"],
        "prefix": job.defaults.get("prefix", _NONE) if kept_prefix else _NONE,
        "repository": repository if repository.value else names["repository"],
        "output_key": key if key.value else job.defaults.get("output_key", _NONE),
        "volume_key": key if key.value else job.defaults.get("volume_key", _NONE),
    }


def settings_with_origin(job: SageMakerJob) -> dict[str, SettingValue]:
    """Return all that was found or chosen for a job, with where it comes from."""
    return first_of_each(text_settings(job), applicable_settings(job))


def applicable_settings(job: SageMakerJob) -> dict[str, SettingValue]:
    """Return the found settings that the options leave open. An image yields to a framework that
    was asked for, and a rehearsal has none that takes a login."""
    chosen = {name for name in _MORE if name not in _JOINED and getattr(job.options, name)}
    if job.options.rehearsed or job.layout.framework or job.layout.image:
        chosen.add("base")
    return {
        name: job.defaults[name] for name in _MORE if name in job.defaults and name not in chosen
    }


def _own_names(region: str) -> dict[str, SettingValue]:
    """Return the SDK's name for a bucket that nobody has named, and our repository's."""
    if not region:
        return {"bucket": _NONE, "repository": _NONE}
    home = f"{ACCOUNT}.dkr.ecr.{region}.{partition_of(region).domain}/distrain"
    return {
        "bucket": SettingValue(
            f"sagemaker-{region}-{ACCOUNT}", f"{OWN_NAME}, made if it isn't there"
        ),
        "repository": SettingValue(home, "the account's registry, made if it isn't there"),
    }


def problems(settings: Settings, *, rehearsed: bool) -> Iterator[Finding]:
    """Yield an error for each setting that is missing, with the ways to make it, or is no setting
    of AWS's."""
    if not settings.region:
        yield _error("no-region", "region", "no region is set: " + _ways("region", "us-east-1"))
    elif not REGION_FORM.fullmatch(settings.region):
        message = f"{settings.region!r} is not an AWS region: write one such as --region us-east-1"
        yield _error("region", "region", message)
    elif regions() and settings.region not in regions():
        yield _unknown(settings.region)
    if not settings.role:
        making = "; the console makes one: SageMaker AI, Role manager"
        message = f"no role is set: {_ways('role', 'my-training-role')}{making}"
        yield _error("no-role", "role", message)
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
    """Return a finding about a region that may be new: boto3 would find its way there."""
    close = " or ".join(get_close_matches(region, sorted(regions()), 2))
    asking = f"; did you mean {close}?" if close else ""
    message = f"botocore {version('botocore')} knows of no SageMaker in {region!r}{asking}"
    return Finding("sagemaker.unknown-region", Severity.WARNING, "region", message)


def _is_amazon(repository: str) -> bool:
    match = REPOSITORY_FORM.match(repository)
    return match is not None and match["domain"] in {partition.domain for partition in partitions()}


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.ERROR, where, message)


def _ways(name: str, example: str) -> str:
    more = (f"set the variable {VARIABLES[0]}", f"run aws configure set region {example}")
    return ways_to_set(name, example, *(more if name == "region" else ()))


def machine_settings(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    """Return the settings in the files of AWS's tools, and Studio's about the notebook's space.
    Raises OptionError for a file of SageMaker's SDK that can't be read."""
    return first_of_each(_of_profile(environ), sdk_settings(environ), _of_studio())


def _of_studio() -> dict[str, SettingValue]:
    here = studio.studio()
    if here is None:
        return {}
    role, origin = studio.role(here)
    return {
        "region": SettingValue(here.region, str(studio.FILE)),
        "role": SettingValue(role, origin),
    }


def _text(job: SageMakerJob, name: str, variables: tuple[str, ...] = ()) -> SettingValue:
    """Return the chosen or stored value, else the detected one, else one made up for a
    rehearsal."""
    made_up = REHEARSED.get(name, "") if job.options.rehearsed else ""
    return text_of(job, name, variables, made_up)


def _of_profile(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    """Return the region of the profile that is active in the AWS CLI's configuration."""
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    file = environ.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config"
    profiles = configparser.ConfigParser(interpolation=None)
    try:
        profiles.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):  # the CLI says so itself, and better
        return {}
    sections = ("default", "profile default") if name == "default" else (f"profile {name}",)
    regions = (profiles.get(section, "region", fallback="") for section in sections)
    return {"region": SettingValue(next(filter(None, regions), ""), f"{file}, profile {name}")}


def login_of(environ: Mapping[str, str]) -> str:
    """Return the credentials of AWS's own tools, by what names them, their file, or the place that
    has them; empty if none."""
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
    file = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws/credentials")
    if file.exists():
        return str(file)
    return "the role of this notebook" if studio.studio() else ""
