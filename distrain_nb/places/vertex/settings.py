"""Where a job goes on Vertex AI: project, region, bucket and the accounts that it runs under.

Each setting is looked for in the options, in `%distrain config`, in the environment, in the files
of `gcloud`, and with the metadata server of the machine that the notebook runs on, in this order.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.settings import SettingValue, first_of_each, text_of, ways_to_set
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.vertex import workbench as google

if TYPE_CHECKING:
    from distrain_nb.places.vertex.options import VertexJob

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

# Written for the machine's own account: the job then runs as Vertex AI's.
NO_ACCOUNT = "none"

_NAMES = ("project", "region", "bucket", "repository", "service_account", "network", "tensorboard")


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
    """Return the settings that hold for a job."""
    texts = {name: str(item.value) for name, item in settings_with_origin(job).items()}
    account = texts.get("service_account", "")
    project, region = texts.get("project", ""), texts.get("region", "")
    return Settings(
        project=project,
        region=region,
        bucket=texts.get("bucket", "").removeprefix("gs://").strip("/"),
        repository=texts.get("repository") or f"{region}-docker.pkg.dev/{project}/distrain",
        service_account="" if account == NO_ACCOUNT else account,
        network=texts.get("network", ""),
        tensorboard=texts.get("tensorboard", ""),
    )


def settings_with_origin(job: VertexJob) -> dict[str, SettingValue]:
    """Return the same, each that was made with where it comes from."""
    made_up = REHEARSED if job.options.rehearsed else {}
    settings = {
        name: text_of(job, name, VARIABLES.get(name, ()), made_up.get(name, "")) for name in _NAMES
    }
    return first_of_each(
        settings, _own_names(str(settings["project"].value), str(settings["region"].value))
    )


def own_bucket(project: str, region: str) -> str:
    """Return the name of a bucket that nobody has named; none if a project's can't be in one."""
    return f"{project}-distrain-{region}" if project and region and ":" not in project else ""


def own_repository(project: str, region: str) -> str:
    """Return the name of a repository that nobody has named."""
    return f"{region}-docker.pkg.dev/{project}/distrain" if project and region else ""


def _own_names(project: str, region: str) -> dict[str, SettingValue]:
    origin = "the project's and the region's names, made if it isn't there"
    return {
        "bucket": SettingValue(own_bucket(project, region), origin),
        "repository": SettingValue(own_repository(project, region), origin),
    }


def missing_settings(settings: Settings) -> Iterator[Finding]:
    """Yield an error for each setting that a job can't do without, with the ways to make it. A
    bucket lacks only where it can't be named after project and region."""
    for name, example in (
        ("project", "my-project"),
        ("region", "us-central1"),
        ("bucket", "my-bucket"),
    ):
        derived = name == "bucket" and not (settings.project and settings.region)
        if not getattr(settings, name) and not derived:
            yield Finding(
                f"vertex.no-{name}",
                Severity.ERROR,
                name,
                f"no {name} is set: {_ways(name, example)}{_making(settings, name, example)}",
            )


def _making(settings: Settings, name: str, example: str) -> str:
    if name != "bucket":
        return ""
    line = f"gcloud storage buckets create gs://{example} --location={settings.region}"
    return f"; this makes one in the job's region: !{line} --project={settings.project}"


def _ways(name: str, example: str) -> str:
    if name not in VARIABLES:
        return ways_to_set(name, example)
    section, key = GCLOUD[name][0]
    prefix = "" if section == "core" else f"{section}/"
    variable = f"set the variable {VARIABLES[name][1]}"
    return ways_to_set(name, example, variable, f"run gcloud config set {prefix}{key} {example}")


def machine_settings(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    """Return the settings of `gcloud`, and those of Compute Engine's metadata server."""
    settings = first_of_each(_of_gcloud(environ))
    machine = google.machine(environ)
    if machine is None:
        return settings
    origin = "the metadata server"
    return first_of_each(
        settings,
        {
            "project": SettingValue(machine.project, origin),
            "region": SettingValue(machine.region, origin),
            "service_account": SettingValue(machine.account, origin),
        },
    )


def _of_gcloud(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    """Project and region of its active configuration; of a zone, its region."""
    file = _gcloud_file(environ)
    properties = configparser.ConfigParser(interpolation=None)
    try:
        properties.read(file, encoding="utf-8")
    except configparser.Error:  # gcloud says so itself, and better
        return {}
    settings = {}
    for name, places in GCLOUD.items():
        texts = (properties.get(*place, fallback="") for place in places)
        settings[name] = SettingValue(next(filter(None, texts), ""), str(file))
    zone = properties.get("compute", "zone", fallback="")
    return first_of_each(settings, {"region": SettingValue(zone.rpartition("-")[0], str(file))})


def _gcloud_file(environ: Mapping[str, str]) -> Path:
    """Return the configuration of `gcloud` that is active, whether or not the file is there."""
    folder = _gcloud_folder(environ)
    name = environ.get("CLOUDSDK_ACTIVE_CONFIG_NAME", "")
    if not name:
        try:
            name = (folder / "active_config").read_text(encoding="utf-8").strip()
        except OSError:
            name = "default"
    return folder / "configurations" / f"config_{name}"


def login_of(environ: Mapping[str, str]) -> str:
    """Return the credentials of Google's own tools, by what names them, their file, or the account
    of the machine; empty if none."""
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return f"GOOGLE_APPLICATION_CREDENTIALS, {named}"
    file = _gcloud_folder(environ) / "application_default_credentials.json"
    if file.exists():
        return str(file)
    machine = google.machine(environ)
    return f"this machine's account {machine.account}" if machine and machine.account else ""


def _gcloud_folder(environ: Mapping[str, str]) -> Path:
    folder = environ.get("CLOUDSDK_CONFIG")
    return Path(folder) if folder else Path.home() / ".config" / "gcloud"
