"""Google's services by REST, for what needs no client library."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import google.auth
from google.auth.transport.requests import AuthorizedSession, Request
from requests import RequestException

from distrain_nb.errors import DistrainError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from requests import Response

    from distrain_nb.types import JsonObject

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
ASK_S = 5.0
_OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"


class NoAnswer(DistrainError):
    """A service can't be reached."""


class Api:
    """A service by its name, `NAME.googleapis.com`, or where gcloud's variable for it says it is.

    Every call takes 5 s at most. Raises GoogleAuthError where there is no login, and NoAnswer.
    """

    def __init__(self, name: str, credentials: Credentials | None = None) -> None:
        override = os.environ.get(f"{_OVERRIDE}{name.upper()}", "").rstrip("/")
        self._base = override or f"https://{name}.googleapis.com"
        self._session = AuthorizedSession(credentials or login())  # type: ignore[no-untyped-call]

    def get(self, path: str) -> Response:
        return self._ask("GET", path)

    def post(self, path: str, body: JsonObject) -> Response:
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: JsonObject | None = None) -> Response:
        try:
            answer: Response = self._session.request(  # type: ignore[no-untyped-call]
                method, f"{self._base}/{path}", json=body, timeout=ASK_S
            )
        except RequestException as error:
            raise NoAnswer(f"{self._base} doesn't answer: {type(error).__name__}") from None
        return answer

    @staticmethod
    def reason(answer: Response) -> str:
        """Return the service's words, else the status."""
        try:
            return str(answer.json()["error"]["message"]).rstrip(".")
        except (ValueError, LookupError, TypeError):
            return f"{answer.status_code} {answer.reason}"


def login() -> Credentials:
    """Google's default credentials, with a token. Raises GoogleAuthError."""
    credentials, _ = google.auth.default(scopes=SCOPES)
    credentials.refresh(Request())  # type: ignore[no-untyped-call]
    return credentials
