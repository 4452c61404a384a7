"""What Google Cloud says about the login and its permissions, for `%distrain doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from google.auth.exceptions import GoogleAuthError

from distrain_nb.backends.checks import Check, Health, allowed
from distrain_nb.places.vertex.rest import Api, NoAnswer, login
from distrain_nb.places.vertex.settings import NO_ACCOUNT, login_of, own_bucket, own_repository

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

    from distrain_nb.backends.settings import Settled

_JOBS = tuple(f"aiplatform.customJobs.{verb}" for verb in ("create", "get", "list", "cancel"))
_LOG = ("logging.logEntries.list",)
_OBJECTS = tuple(f"storage.objects.{verb}" for verb in ("create", "get", "list", "delete"))
_IMAGES = tuple(f"artifactregistry.repositories.{v}Artifacts" for v in ("upload", "download"))
_ACT = ("iam.serviceAccounts.actAs",)


class _Question(NamedTuple):
    """A resource, the permissions to ask for, and the role that has them."""

    subject: str
    service: str
    resource: str
    permissions: Sequence[str]
    remedy: str
    created_by_us: bool = False


def access(settled: Settled) -> Iterator[Check]:
    """Yield whether the login works, and which permissions it lacks for jobs."""
    if not login_of(os.environ):
        return
    try:
        credentials = login()
    except GoogleAuthError as error:
        remedy = "log in again: gcloud auth application-default login"
        yield Check("identity", Health.BROKEN, f"{error}", remedy)
        return
    account = str(getattr(credentials, "service_account_email", "") or "your own account")
    yield Check("identity", Health.GOOD, f"{account}: the login works")
    values = {name: str(setting.value) for name, setting in settled.items()}
    for question in _questions(values, account):
        try:
            yield _asked(question, credentials)
        except (NoAnswer, GoogleAuthError) as error:  # the other services would not answer either
            yield Check("service", Health.MISSING, str(error), "look at the network, and try again")
            return


def _questions(values: dict[str, str], account: str) -> Iterator[_Question]:
    project, region = values.get("project", ""), values.get("region", "")
    if not project:
        return
    who = f"serviceAccount:{account}" if "@" in account else "user:YOU"
    grant = f"gcloud projects add-iam-policy-binding {project} --member={who} --role=roles/"
    parent = f"projects/{project}"
    manager = "cloudresourcemanager"
    yield _Question("jobs", manager, f"v1/{parent}", _JOBS, f"{grant}aiplatform.user")
    yield _Question("log", manager, f"v1/{parent}", _LOG, f"{grant}logging.viewer")
    bucket = values.get("bucket", "").removeprefix("gs://").strip("/")
    if bucket:
        created_by_us = bucket == own_bucket(project, region)
        remedy = f"{grant}storage.admin" if created_by_us else f"{grant}storage.objectAdmin"
        yield _Question("bucket", "storage", bucket, _OBJECTS, remedy, created_by_us)
    repository = values.get("repository", "")
    host, _, path = repository.partition("/")
    if host.endswith("-docker.pkg.dev") and path.count("/") == 1:
        place, (home, name) = host.removesuffix("-docker.pkg.dev"), path.split("/")
        resource = f"v1/projects/{home}/locations/{place}/repositories/{name}"
        created_by_us = repository == own_repository(project, region)
        remedy = f"{grant}artifactregistry.{'admin' if created_by_us else 'writer'}"
        yield _Question("repository", "artifactregistry", resource, _IMAGES, remedy, created_by_us)
    acts = values.get("service_account", "")
    if acts and acts != NO_ACCOUNT:
        remedy = (
            f"gcloud iam service-accounts add-iam-policy-binding {acts} --member={who} "
            "--role=roles/iam.serviceAccountUser, or %distrain config "
            f"service_account={NO_ACCOUNT}"
        )
        yield _Question("account", "iam", f"v1/{parent}/serviceAccounts/{acts}", _ACT, remedy)


def _asked(question: _Question, credentials: Credentials) -> Check:
    """Return the missing permissions.

    A bucket or a repository that the first job will make is named as such. Raises NoAnswer,
    GoogleAuthError.
    """
    subject, permissions = question.subject, list(question.permissions)
    api = Api(question.service, credentials)
    if question.service == "storage":
        named = urlencode({"permissions": permissions}, doseq=True)
        answer = api.get(f"storage/v1/b/{question.resource}/iam/testPermissions?{named}")
    else:
        answer = api.post(f"{question.resource}:testIamPermissions", {"permissions": permissions})
    if answer.status_code == 404:
        name = question.resource.rpartition("/")[2]
        if question.created_by_us:
            return Check(subject, Health.GOOD, f"{name} is not there yet: the first job makes it")
        return Check(subject, Health.MISSING, f"{name} is not there", _making(question))
    if answer.status_code != 200:
        service = f"gcloud services enable {question.service}.googleapis.com"
        remedy = f"where the service is off: {service}"
        return Check(subject, Health.MISSING, f"can't be asked: {api.reason(answer)}", remedy)
    granted = answer.json().get("permissions", [])
    return allowed(
        subject,
        [permission for permission in permissions if permission not in granted],
        question.remedy,
    )


def _making(question: _Question) -> str:
    name = question.resource.rpartition("/")[2]
    if question.service == "storage":
        return f"gcloud storage buckets create gs://{name} --location=REGION"
    return f"gcloud artifacts repositories create {name} --repository-format=docker"
