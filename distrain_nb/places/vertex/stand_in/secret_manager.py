"""Secret Manager, and the metadata server that gives a replica its token."""

from __future__ import annotations

import base64
import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from distrain_nb.rehearsal.access import serve_json
from distrain_nb.rehearsal.notes import secret_value

if TYPE_CHECKING:
    from email.message import Message

_ACCOUNT = "rehearsal"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
_VERSION = re.compile(r"/v1/(projects/[^/]+/secrets/([^/]+)/versions/[^/:]+):access")
PERMISSION = "secretmanager.versions.access"


def secret_manager(permission: str) -> AbstractContextManager[int]:
    """Serve both; gives the port. `permission` is the one that the job lacks."""
    return serve_json(lambda path, headers, _: _answer(path, headers, permission))


def _answer(path: str, headers: Message, permission: str) -> tuple[int, dict[str, Any]]:
    if path == _TOKEN and headers.get("Metadata-Flavor") == "Google":
        return 200, {"access_token": _ACCOUNT, "expires_in": 3599, "token_type": "Bearer"}
    match = _VERSION.fullmatch(path)
    if match is None:
        return 404, _error(404, f"{path} was not found.")
    if headers.get("Authorization") != f"Bearer {_ACCOUNT}":
        return 401, _error(401, "Request is missing required authentication credential.")
    if permission == PERMISSION:
        return 403, _error(403, f"Permission '{PERMISSION}' denied for resource '{match[1]}'.")
    data = base64.b64encode(secret_value(match[2]).encode()).decode()
    return 200, {"name": match[1], "payload": {"data": data}}


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
