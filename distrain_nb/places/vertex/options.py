"""Options of a job on Vertex AI, and those with a form of their own as the API has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.options import option
from distrain_nb.backends.remote.options import CloudOptions
from distrain_nb.backends.remote.variables import no_secret, variables_of
from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from distrain_nb.backends.job import Job
    from distrain_nb.types import Json

LONGEST_LABEL, MOST_LABELS = 64, 64
_SECRET = re.compile(
    r"(?:projects/(?P<project>[a-z0-9.:-]+)/secrets/)?(?P<name>[A-Za-z0-9_-]{1,255})"
    r"(?:/versions/(?P<version>[\w-]+)|/(?P<number>[\w-]+))?"
)
# By the API's reference of baseOutputDirectory, which every job has, and of a job's environment.
SET_BY_SERVICE = frozenset(
    {
        *("AIP_MODEL_DIR", "AIP_CHECKPOINT_DIR", "AIP_TENSORBOARD_LOG_DIR"),
        *("CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID", "CLOUD_ML_TRIAL_ID"),
        *("CLUSTER_SPEC", "TF_CONFIG"),
    }
)
_ANY, _NONE = "any", "none"


@dataclass(frozen=True)
class VertexOptions(CloudOptions):
    """Options of a job besides its layout and those of every job."""

    project: str = option("NAME", "Google Cloud project", "", setting="project")
    service_account: str = option(
        "EMAIL", "service account that the job runs as", "",
        setting="service_account", like=("role",),
    )  # fmt: skip
    pipeline: bool = option("", "submit as a training pipeline", False)
    nfs: tuple[str, ...] = option("SERVER:PATH:MOUNT", "NFS share to mount", ())
    lustre: tuple[str, ...] = option(
        "ADDRESS:FILESYSTEM:VOLUME:MOUNT", "Lustre volume to mount", ()
    )
    reservation: str = option("NAME", "reservation to use", "")
    persistent_resource: str = option(
        "NAME", "persistent resource to run on", "", like=("keep_alive",)
    )
    web_access: bool = option("", "allow a shell in the replicas", False)
    tensorboard: str = option("NAME", "Vertex AI TensorBoard instance", "", setting="tensorboard")
    network: str = option(
        "NAME", "VPC network of the job", "",
        setting="network", like=("subnet", "security_group"),
    )  # fmt: skip
    restart: bool = option(
        "", "restart the whole job when a replica is lost", False, like=("attempts",)
    )
    no_retries: bool = option(
        "", "don't let the service retry after its own errors", False,
        label="No retries", folded=True, request=("scheduling.disableRetries", "disable_retries"),
    )  # fmt: skip
    network_attachment: str = option(
        "NAME", "network attachment through which the job reaches your VPC", "", like=("subnet",),
        label="Network attachment", folded=True, request=("pscInterfaceConfig.networkAttachment",),
    )  # fmt: skip
    ip_range: tuple[str, ...] = option(
        "NAME", "reserved IP range for the job's machines", (),
        label="IP ranges", folded=True, request=("reservedIpRanges",),
    )  # fmt: skip
    kms_key: str = option("ID", "key that encrypts volumes and output", "")


VertexJob: TypeAlias = "Job[VertexOptions]"


def labels(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE texts. Raises OptionError for what Google Cloud takes for no label."""
    pairs = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name[:1].isalpha() or not all(map(_is_of_label, (name, value))):
            raise OptionError(
                f"invalid --label {text!r}: expected NAME=VALUE in lower case letters, digits, "
                f"- and _, NAME beginning with a letter, each of up to {LONGEST_LABEL} characters"
            )
        pairs[name] = value
    if len(pairs) >= MOST_LABELS:
        raise OptionError(
            f"{len(pairs)} times --label: expected fewer than {MOST_LABELS}, with that of the run"
        )
    return pairs


def _is_of_label(text: str) -> bool:
    """Letters of any script count, unless they have a lower case that they are not in."""
    fits = all(sign in "-_" or (sign.isalnum() and sign == sign.lower()) for sign in text)
    return fits and len(text) <= LONGEST_LABEL


def variables(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE texts as environment variables. Raises OptionError."""
    values = variables_of(texts)
    for name in values:
        if name in SET_BY_SERVICE:
            raise OptionError(f"invalid --env {name!r}: Vertex AI sets it itself")
    return values


def secret(variable: str, text: str, project: str) -> str:
    """Return the full name of a version of a secret in Secret Manager, from `SECRET`,
    `SECRET/VERSION` or the full name. Raises OptionError."""
    match = _SECRET.fullmatch(text)
    if match is None:
        form = "SECRET[/VERSION], or projects/PROJECT/secrets/SECRET[/versions/VERSION]"
        raise no_secret(variable, text, form)
    home = match["project"] or project or "PROJECT"
    version = match["version"] or match["number"] or "latest"
    return f"projects/{home}/secrets/{match['name']}/versions/{version}"


def nfs_mounts(texts: Iterable[str]) -> list[dict[str, str]]:
    """SERVER:PATH:MOUNT texts; the share is mounted at `/mnt/nfs/MOUNT`. Raises OptionError."""
    mounts = []
    for text in texts:
        parts = text.split(":")
        if len(parts) != 3 or not all(parts) or not parts[1].startswith("/"):
            raise OptionError(
                f"invalid --nfs {text!r}: expected SERVER:PATH:MOUNT, such as 10.0.0.2:/share:data,"
                " which is then at /mnt/nfs/data"
            )
        mounts.append({"server": parts[0], "path": parts[1], "mountPoint": parts[2]})
    return mounts


def lustre_mounts(texts: Iterable[str]) -> list[dict[str, str]]:
    """ADDRESS:FILESYSTEM:VOLUME:MOUNT texts. Raises OptionError."""
    mounts = []
    for text in texts:
        parts = text.split(":")
        if len(parts) != 4 or not all(parts):
            raise OptionError(
                f"invalid --lustre {text!r}: expected ADDRESS:FILESYSTEM:VOLUME:MOUNT, such as "
                "10.0.0.2:lustrefs:projects/p/locations/us-central1-a/instances/i:data"
            )
        names = ("instanceIp", "filesystem", "volumeHandle", "mountPoint")
        mounts.append(dict(zip(names, parts, strict=True)))
    return mounts


def reservation(text: str) -> dict[str, Json] | None:
    """`any`, `none`, or the reservations (separated by commas) that machines are taken from."""
    if not text:
        return None
    if text in (_ANY, _NONE):
        return {"reservationAffinityType": "ANY_RESERVATION" if text == _ANY else "NO_RESERVATION"}
    return {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": text.split(","),
    }
