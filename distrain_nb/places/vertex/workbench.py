"""Machines of Compute Engine, and what their metadata server tells: Workbench, Colab Enterprise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distrain_nb.backends import notebooks
from distrain_nb.backends.negative_cache import has_failed, note_failure
from distrain_nb.backends.notebooks import COLAB_ENTERPRISE, PRODUCT, NotebookPlace

# google.auth knows a machine of Compute Engine by the same file and the same variables.
PRODUCT_FILE = Path("/sys/class/dmi/id/product_name")
HOSTS = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT")
SWITCHED_OFF = "NO_GCE_CHECK"
HOST = "metadata.google.internal"
FLAVOR = {"Metadata-Flavor": "Google"}
ASK_S = 1.0

WORKBENCH = "WORKBENCH_INSTANCE"

# What Workbench writes into the metadata of its instances.
_OF_WORKBENCH = ("proxy-mode", "notebooks-api", "notebooks-api-version", "idle-timeout-seconds")
_IDLE = "idle-timeout-seconds"
_IDLE_S = 3 * 3600.0

_machines: dict[str, ComputeEngine] = {}


@dataclass(frozen=True)
class ComputeEngine:
    """What a metadata server tells, empty where it does not: `account` is the e-mail of the
    service account, `attributes` are the instance's."""

    project: str
    zone: str
    account: str
    attributes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def region(self) -> str:
        """The region of the zone."""
        return self.zone.rpartition("-")[0]


def machine(environ: Mapping[str, str]) -> ComputeEngine | None:
    """Return the machine of Compute Engine that this is, asked for once; None elsewhere, and where
    its metadata server does not answer within a second."""
    host = _host(environ)
    if not host or has_failed(host):
        return None
    if host not in _machines:
        import httpx  # which most machines need not load for this

        try:
            _machines[host] = _asked(host)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            note_failure(host)
            return None
    return _machines[host]


def place(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Workbench or Colab Enterprise, with the limit after which their machines are shut down."""
    product = environ.get(PRODUCT)
    if product == COLAB_ENTERPRISE:
        return NotebookPlace("Colab Enterprise", _IDLE_S, "the default of runtime templates")
    here = machine(environ)
    if here is None:
        return NotebookPlace("Vertex AI Workbench instance") if product == WORKBENCH else None
    if product != WORKBENCH and not any(name in here.attributes for name in _OF_WORKBENCH):
        return NotebookPlace(f"Compute Engine, {here.zone}")
    return NotebookPlace(f"Vertex AI Workbench instance, {here.zone}", *_idle(here.attributes))


def _idle(attributes: Mapping[str, str]) -> tuple[float | None, str]:
    """Return the idle time. Without the attribute it is the default; empty or 0 switches it off."""
    if _IDLE not in attributes:
        return _IDLE_S, "the default of Workbench instances"
    try:
        return float(attributes[_IDLE] or 0) or None, f"the instance's metadata {_IDLE}"
    except ValueError:
        return None, ""


def _host(environ: Mapping[str, str]) -> str:
    """Whom to ask; empty where nothing says that this is a machine of Compute Engine."""
    if environ.get(SWITCHED_OFF, "").lower() == "true":
        return ""
    if notebooks.hosted_elsewhere(environ):
        return ""  # the machine is Google's own, and none of the user's projects
    named = next(filter(None, map(environ.get, HOSTS)), "")
    if named:
        return named
    try:
        return HOST if PRODUCT_FILE.read_text(encoding="utf-8").startswith("Google") else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _asked(host: str) -> ComputeEngine:
    """Raise httpx.HTTPError where nobody answers, and ValueError where somebody else does."""
    import httpx

    with httpx.Client(headers=FLAVOR, timeout=ASK_S, trust_env=False) as client:

        def text(path: str) -> str:
            answer = client.get(f"http://{host}/computeMetadata/v1/{path}")
            if answer.headers.get("Metadata-Flavor") != "Google":
                raise ValueError(f"{host} is no metadata server")
            return answer.text.strip() if answer.status_code == httpx.codes.OK else ""

        return ComputeEngine(
            project=text("project/project-id"),
            zone=text("instance/zone").rpartition("/")[2],
            account=text("instance/service-accounts/default/email"),
            attributes={
                name: text(f"instance/attributes/{name}") for name in _attribute_names(text)
            },
        )


def _attribute_names(text: Callable[[str], str]) -> list[str]:
    """Return the attributes that say something of the place; others may hold what is nobody's
    business."""
    there = text("instance/attributes/").split()
    return [name for name in _OF_WORKBENCH if name in there]
