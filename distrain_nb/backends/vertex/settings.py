"""Where a job goes on Vertex AI: project, region, bucket and the accounts that it runs under.

Each setting is looked for in the options, in `%distrain config`, in the environment, and in the
files of `gcloud`, in this order.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.vertex.options import VertexJob

# The variables that Google's own tools and notebooks set, the more particular ones first.
VARIABLES = {
    "project": (
        "CLOUD_ML_PROJECT_ID",
        "GOOGLE_CLOUD_PROJECT",
        "CLOUDSDK_CORE_PROJECT",
        "GCLOUD_PROJECT",
    ),
    "region": (
        "CLOUD_ML_REGION",
        "GOOGLE_CLOUD_REGION",
        "GOOGLE_CLOUD_LOCATION",
        "CLOUDSDK_AI_REGION",
        "CLOUDSDK_COMPUTE_REGION",
    ),
}
GCLOUD = {"project": (("core", "project"),), "region": (("ai", "region"), ("compute", "region"))}

# A rehearsal needs no account, so what nobody has chosen is made up.
REHEARSED = {"project": "rehearsal", "region": "us-central1", "bucket": "rehearsal"}


@dataclass(frozen=True)
class Settings:
    """Settings of a job; an empty text is one that nobody has made.

    `bucket` is a name without `gs://`; `repository` is where images are pushed to.
    """

    project: str
    region: str
    bucket: str
    repository: str
    service_account: str = ""
    network: str = ""
    tensorboard: str = ""

    @property
    def parent(self) -> str:
        """What the API calls the location."""
        return f"projects/{self.project}/locations/{self.region}"


def settings_of(job: VertexJob) -> Settings:
    """The settings that hold for a job, whose `defaults` are those of `gcloud`."""
    project, region = _setting(job, "project"), _setting(job, "region")
    return Settings(
        project=project,
        region=region,
        bucket=_setting(job, "bucket").removeprefix("gs://").strip("/"),
        repository=_setting(job, "repository") or f"{region}-docker.pkg.dev/{project}/distrain",
        service_account=_setting(job, "service_account"),
        network=_setting(job, "network"),
        tensorboard=_setting(job, "tensorboard"),
    )


def missing(settings: Settings) -> Iterator[Finding]:
    """An error for each setting that a job can't do without, with the ways to make it."""
    for name, example in (
        ("project", "my-project"),
        ("region", "us-central1"),
        ("bucket", "my-bucket"),
    ):
        if not getattr(settings, name):
            yield Finding(
                f"vertex.no-{name}",
                Severity.ERROR,
                name,
                f"no {name} is set: {_ways(name, example)}",
            )


def _ways(name: str, example: str) -> str:
    ways = [f"write --{name} {example}", f"keep it with %distrain config {name}={example}"]
    if name in VARIABLES:
        ways.append(f"set the variable {VARIABLES[name][1]}")
        section, key = GCLOUD[name][0]
        prefix = "" if section == "core" else f"{section}/"
        ways.append(f"run gcloud config set {prefix}{key} {example}")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _setting(job: VertexJob, name: str) -> str:
    chosen = _region(job) if name == "region" else getattr(job.options, name)
    named = (job.environ.get(variable) for variable in VARIABLES.get(name, ()))
    made_up = REHEARSED.get(name, "") if job.options.rehearsed else ""
    return str(chosen or next(filter(None, named), "") or job.defaults.get(name) or made_up)


def _region(job: VertexJob) -> str:
    return job.layout.region or job.config.region


def of_gcloud(environ: Mapping[str, str]) -> dict[str, str]:
    """What the active configuration of `gcloud` has of project and region."""
    properties = configparser.ConfigParser(interpolation=None)
    try:
        properties.read(_gcloud_file(environ), encoding="utf-8")
    except configparser.Error:  # gcloud says so itself, and better
        return {}
    return {
        name: next(filter(None, (properties.get(*place, fallback="") for place in places)), "")
        for name, places in GCLOUD.items()
    }


def _gcloud_file(environ: Mapping[str, str]) -> Path:
    """The configuration of `gcloud` that is active, whether or not the file is there."""
    folder = _gcloud_folder(environ)
    name = environ.get("CLOUDSDK_ACTIVE_CONFIG_NAME", "")
    if not name:
        try:
            name = (folder / "active_config").read_text(encoding="utf-8").strip()
        except OSError:
            name = "default"
    return folder / "configurations" / f"config_{name}"


def login_of(environ: Mapping[str, str]) -> str:
    """The credentials of Google's own tools, by what names them or their file; empty if none."""
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return f"GOOGLE_APPLICATION_CREDENTIALS, {named}"
    kept = _gcloud_folder(environ) / "application_default_credentials.json"
    return str(kept) if kept.exists() else ""


def _gcloud_folder(environ: Mapping[str, str]) -> Path:
    own = environ.get("CLOUDSDK_CONFIG")
    return Path(own) if own else Path.home() / ".config" / "gcloud"
