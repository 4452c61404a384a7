"""Spaces of SageMaker Studio, its classic apps, and notebook instances: what the file with which
they describe themselves tells, and what SageMaker tells of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.negative_cache import has_failed, note_failure
from distrain_nb.backends.notebooks import NotebookPlace

if TYPE_CHECKING:
    from distrain_nb.types import Json, JsonObject

FILE = Path("/opt/ml/metadata/resource-metadata.json")
VERSION = "IMAGE_VERSION"  # SageMaker Distribution's images have it
CONNECT_S, READ_S = 2, 4

_APPS = {
    "JupyterLab": "JupyterLab space",
    "CodeEditor": "Code Editor space",
    "JupyterServer": "classic app",
    "KernelGateway": "classic app",
}
_SETTINGS = {"JupyterLab": "JupyterLabAppSettings", "CodeEditor": "CodeEditorAppSettings"}

_answers: dict[tuple[str, ...], dict[str, Json]] = {}


@dataclass(frozen=True)
class Studio:
    """What the file tells, empty where it does not. `name` is the app's, or that of a notebook
    instance, which is in no domain."""

    region: str = ""
    role: str = ""
    domain: str = ""
    space: str = ""
    profile: str = ""
    app: str = ""
    name: str = ""

    @property
    def is_instance(self) -> bool:
        """Whether this is a notebook instance."""
        return bool(self.name) and not self.domain


def studio() -> Studio | None:
    """Return the space, app or instance that this is; None elsewhere."""
    try:
        metadata = json.loads(FILE.read_text(encoding="utf-8"))
        texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
    except (OSError, ValueError, AttributeError):
        return None
    return Studio(
        region=_region_of(texts.get("ResourceArn", "")),
        role=texts.get("ExecutionRoleArn", ""),
        domain=texts.get("DomainId", ""),
        space=texts.get("SpaceName", ""),
        profile=texts.get("UserProfileName", ""),
        app=texts.get("AppType", ""),
        name=texts.get("ResourceName", ""),
    )


def place(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Studio or a notebook instance, with the limit after which its machine is shut down."""
    here = studio()
    if here is None:
        return None
    if here.is_instance:
        return NotebookPlace(f"SageMaker notebook instance {here.name}")
    kind = _APPS.get(here.app, here.app or ("space" if here.space else "classic app"))
    version = f", distribution {environ[VERSION]}" if environ.get(VERSION) else ""
    return NotebookPlace(f"SageMaker Studio, {kind}{version}", *_idle(here))


def role(here: Studio) -> tuple[str, str]:
    """Return the role that it runs under, and where that stands; both empty where it can't be had.

    As SageMaker's own SDK finds it: in the file, else as the instance, the owner of a private
    space, the user or the domain has it.
    """
    if here.role:
        return here.role, str(FILE)
    if here.is_instance:
        answer = _ask(here, "describe_notebook_instance", NotebookInstanceName=here.name)
        return _text(answer, "RoleArn"), "DescribeNotebookInstance"
    for settings, origin in _layers(here):
        if _text(settings, "ExecutionRole"):
            return _text(settings, "ExecutionRole"), origin
    return "", ""


def _idle(here: Studio) -> tuple[float | None, str]:
    """After how many seconds the app is shut down, in its space's settings before its owner's and
    the domain's."""
    name = _SETTINGS.get(here.app, "")
    if not name:
        return None, ""
    for settings, origin in _layers(here, space_first=True):
        idle = _part(settings, name, "AppLifecycleManagement", "IdleSettings")
        minutes = idle.get("IdleTimeoutInMinutes")
        if idle.get("LifecycleManagement") == "DISABLED":
            return None, ""
        if isinstance(minutes, int):
            return minutes * 60.0, origin
    return None, ""


def _layers(here: Studio, *, space_first: bool = False) -> Iterator[tuple[JsonObject, str]]:
    """Yield the settings that hold, the more particular ones first, with the call that tells
    them."""
    profile, shared = here.profile, False
    if here.space:
        space = _ask(here, "describe_space", DomainId=here.domain, SpaceName=here.space)
        if space_first:
            yield _part(space, "SpaceSettings"), "DescribeSpace"
        shared = _part(space, "SpaceSharingSettings").get("SharingType") == "Shared"
        profile = profile or _text(_part(space, "OwnershipSettings"), "OwnerUserProfileName")
    if profile and not shared:
        named = {"DomainId": here.domain, "UserProfileName": profile}
        user = _ask(here, "describe_user_profile", **named)
        yield _part(user, "UserSettings"), "DescribeUserProfile"
    domain = _ask(here, "describe_domain", DomainId=here.domain)
    order = ("DefaultSpaceSettings", "DefaultUserSettings")
    for name in order if shared or not profile else reversed(order):
        yield _part(domain, name), "DescribeDomain"


def _ask(here: Studio, operation: str, **named: str) -> JsonObject:
    """Return SageMaker's answer, asked for once; empty where it takes longer than seconds, or
    asking isn't allowed."""
    service, question = ("sagemaker", here.region), (here.region, operation, *named.values())
    if question in _answers:
        return _answers[question]
    if has_failed(service) or has_failed(question):
        return {}
    try:
        from boto3 import Session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:  # nothing can be sent without it either
        return {}
    once = Config(connect_timeout=CONNECT_S, read_timeout=READ_S, retries={"total_max_attempts": 1})
    try:
        client = Session().client("sagemaker", region_name=here.region or None, config=once)
        _answers[question] = getattr(client, operation)(**named)
    except ClientError:
        note_failure(question)
    except BotoCoreError:
        note_failure(service)
    return _answers.get(question, {})


def _part(settings: JsonObject, *keys: str) -> JsonObject:
    for key in keys:
        inner = settings.get(key)
        settings = cast("JsonObject", inner) if isinstance(inner, dict) else {}
    return settings


def _text(settings: JsonObject, key: str) -> str:
    value = settings.get(key)
    return value if isinstance(value, str) else ""


def _region_of(arn: str) -> str:
    parts = arn.split(":")
    return parts[3] if len(parts) > 3 else ""
