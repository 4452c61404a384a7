"""A cluster behind slurmrestd: Slurm's REST API, in place of its commands.

The token goes to the server of `slurm_url` alone: no proxy gets it over plain HTTP, and no redirect
is followed.
"""

from __future__ import annotations

import base64
import getpass
import ipaddress
import json
import math
import os
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from distrain_nb.certificates import unverified
from distrain_nb.places.slurm.commands import (
    AWAY,
    PATIENCE_S,
    TOKEN,
    ControllerUnreachable,
    Refused,
    UnverifiedServer,
    environment,
)
from distrain_nb.places.slurm.rest_bodies import (
    OLD,
    accounts_of,
    body,
    code,
    complaint,
    lines,
    newest,
    number,
    queued,
    state_of,
)
from distrain_nb.places.slurm.squeue import QueuedJob

if TYPE_CHECKING:
    from distrain_nb.places.slurm.rest_bodies import Reply
    from distrain_nb.types import JsonObject

_CONNECT_S, _BRIEF_S = 5.0, 10.0
_ENDED = frozenset([2017, 2021])  # Slurm's numbers: no such job, a job that has ended


@dataclass(frozen=True)
class Rest:
    """The slurmrestd at `url`. The token is read for each request, as a file may be renewed: from
    `token_file`, or without one from SLURM_JWT."""

    url: str
    token_file: str = ""
    name = "slurmrestd"

    @property
    def cluster(self) -> str:
        return self.url

    @property
    def version(self) -> int:
        """The newest version of the API that both sides know.

        Raises ControllerUnreachable and Refused.
        """
        self._token()
        return self._newest

    @cached_property
    def _newest(self) -> int:
        paths = self._ask("GET", "/openapi/v3", patience=_BRIEF_S).get("paths") or {}
        try:
            return newest(paths)
        except ValueError as error:
            raise Refused(f"{self.url}: {error}") from None

    def submit(self, script: Path, options: Mapping[str, str]) -> str:
        """Submit a script. slurmrestd doesn't read the options in it."""
        request = body(self.version, options, script.read_text(), job_environment(os.environ))
        reply = self._ask("POST", self._path("job/submit"), request)
        if not reply.get("job_id"):
            raise Refused(complaint(reply.get("errors") or ()) or "it gave no number")
        return str(reply["job_id"])

    def jobs(self) -> tuple[QueuedJob, ...]:
        # A controller that doesn't know the names of users leaves them out.
        user, nameless = self._user(self._token()), ("", os.getuid())
        names = [(job, job.get("user_name") or "") for job in self._list("jobs")]
        rows = [
            job for job, name in names if name == user or (name, job.get("user_id")) == nameless
        ]
        return tuple(map(queued, rows))

    def waiting(self) -> str:
        waiting = [job for job in self._list("jobs") if state_of(job["job_state"]) == "PENDING"]
        waiting.sort(key=lambda job: (-(number(job["priority"]) or 0), job["job_id"]))
        return "\n".join(f"{job['job_id']}|{job['partition']}" for job in waiting)

    def cancel(self, job: str) -> None:
        self._ask("DELETE", self._path(f"job/{job}"), passed=_ENDED)

    def printed(self) -> tuple[str, str]:
        nodes, partitions = self._list("nodes", _BRIEF_S), self._list("partitions", _BRIEF_S)
        accounts = [(p["name"], accounts_of(p)) for p in partitions]
        return (
            "\n".join(lines(partitions, nodes)),
            "\n".join(f"PartitionName={name} AllowAccounts={text}" for name, text in accounts),
        )

    def accounted(self, job: str) -> str:
        answer = self._ask("GET", f"/slurmdb/v0.0.{self.version}/job/{job}")
        return state_of(answer["jobs"][-1]["state"]["current"]) if answer["jobs"] else ""

    def login(self) -> str:
        """Say who logs in, and until when. Raises ControllerUnreachable and Refused."""
        token = self._token()
        until, origin = _expiry(token), self.token_file or TOKEN
        if math.isinf(until):
            return f"{self._user(token)}, by {origin}"
        limit = time.strftime("%d %b %H:%M", time.localtime(until))
        return f"{self._user(token)}, by {origin}, valid until {limit}"

    def _path(self, rest: str) -> str:
        return f"/slurm/v0.0.{self.version}/{rest}"

    def _list(self, kind: str, patience: float = PATIENCE_S) -> list[Reply]:
        slash = "" if self.version == OLD else "/"
        answer = self._ask("GET", self._path(kind) + slash, patience=patience)
        return list(answer.get(kind) or ())

    def _token(self) -> str:
        """Raise Refused if there is no token.

        Raise ControllerUnreachable for one from a file that has to be renewed.
        """
        try:
            path = Path(self.token_file).expanduser()
            text = path.read_text(errors="replace") if self.token_file else os.environ.get(TOKEN)
        except OSError as error:
            raise Refused(f"slurm_token {self.token_file}: {error.strerror}") from None
        token = (text or "").strip().removeprefix(f"{TOKEN}=")
        if not token.isascii() or not token.isprintable() or not token:
            origin = self.token_file or f"the variable {TOKEN}"
            raise Refused(f"{origin} has no token for {self.url}: `scontrol token` prints one")
        if _expiry(token) < time.time():
            ended = f"the token for {self.url} has expired"
            if self.token_file:
                raise ControllerUnreachable(f"{ended}: renew it in {self.token_file}")
            raise Refused(ended)
        return token

    @staticmethod
    def _user(token: str) -> str:
        claims = _claims(token)
        return str(claims.get("sun") or claims.get("username") or getpass.getuser())

    @cached_property
    def _client(self) -> httpx.Client:
        """Raise Refused for a public server to which the token would go in plain text."""
        address = urlsplit(self.url)
        if address.scheme == "http":
            _refuse_public(str(address.hostname))
        encrypted = address.scheme == "https"
        return httpx.Client(verify=encrypted, trust_env=encrypted, follow_redirects=False)

    def _ask(
        self,
        method: str,
        path: str,
        content: JsonObject | None = None,
        patience: float = PATIENCE_S,
        passed: Iterable[int] = (),
    ) -> Reply:
        """Return the answer, also for errors whose numbers are `passed`."""
        token = self._token()
        headers = {"X-SLURM-USER-NAME": self._user(token), "X-SLURM-USER-TOKEN": token}
        timeout = httpx.Timeout(patience, connect=_CONNECT_S)
        try:
            answer = self._client.request(
                method, self.url + path, json=content, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            if words := unverified(error):
                self.__dict__.pop("_client", None)  # the next one reads SSL_CERT_FILE anew
                raise UnverifiedServer(f"{self.url}: {words}") from None
            words = str(error) or type(error).__name__
            raise ControllerUnreachable(f"{self.url} doesn't answer: {words}") from None
        try:
            reply: Reply = answer.json()
        except ValueError:  # such as a proxy's page
            reply = {"errors": [{"error": answer.text.strip()[:500]}]}
        if answer.status_code == httpx.codes.NOT_FOUND:
            self.__dict__.pop("_newest", None)  # the server has others since it was updated
        errors = reply.get("errors") or ()
        if answer.is_success and "json" in answer.headers.get("content-type", ""):
            return reply  # with errors that are none, such as that the job is held
        if {code(error) for error in errors}.intersection(passed):
            return reply
        words = complaint(errors) or f"status {answer.status_code}"
        if answer.status_code in (401, 403):
            raise Refused(f"{self.url} refuses the token: {words}")
        unanswered = answer.status_code in (502, 503, 504) or AWAY.search(words)
        raise (ControllerUnreachable if unanswered else Refused)(words)


def job_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that jobs get: no secrets, and none of Slurm's."""
    variables = environment(environ).items()
    return {name: value for name, value in variables if not name.startswith("SLURM_")}


def _claims(token: str) -> Reply:
    """Return what a token says of itself, unverified; nothing where it can't be read."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _expiry(token: str) -> float:
    """Return when a token expires, in seconds since the epoch."""
    until = _claims(token).get("exp")
    return until if isinstance(until, (int, float)) else math.inf


def _refuse_public(host: str) -> None:
    """Raise Refused for a host with a public address.

    Raise ControllerUnreachable for a host without any address.
    """
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise ControllerUnreachable(f"{host}: {error.strerror}") from None
    if any(ipaddress.ip_address(text.partition("%")[0]).is_global for text in addresses):
        raise Refused(f"{host} has a public address: a token goes there by https:// alone")
