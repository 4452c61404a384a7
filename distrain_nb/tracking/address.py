"""The address of a tracker: where it is kept, and what of it may be told or handed on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from distrain_nb.config import Config
from distrain_nb.secrets.guard import HIDDEN
from distrain_nb.worker.files.tracked import URI_VARIABLE

OFF = "off"


def address(config: Config, environ: Mapping[str, str]) -> str:
    """Return where runs are mirrored to: as it is kept, else as MLflow's own variable has it; empty
    for nowhere. What is relative is so to this process's folder."""
    uri = config.mlflow or environ.get(URI_VARIABLE, "")
    if uri == OFF:
        return ""
    scheme, separator, rest = uri.partition(":///")
    if separator and scheme.startswith("sqlite") and not rest.startswith("/"):
        return f"{scheme}:///{Path(rest).resolve()}"
    plain = uri and ":" not in uri and uri != "databricks"
    return Path(uri).expanduser().resolve().as_uri() if plain else uri


def without_password(text: str, uri: str) -> str:
    """Return a text about a tracker, without the password that its address may have: a database's
    does."""
    try:
        password = urlsplit(uri).password
    except ValueError:
        return text
    for form in filter(None, (password, unquote(password or ""))):
        text = text.replace(f":{form}@", f":{HIDDEN}@")
    return text


def bare(uri: str) -> tuple[str, dict[str, str]]:
    """Return a URI without user and password, and the variables by which MLflow takes these."""
    try:
        parts = urlsplit(uri)
        user, password = parts.username, parts.password
    except ValueError:
        return uri, {}
    if parts.scheme not in ("http", "https") or user is None:
        return uri, {}
    login = {
        "MLFLOW_TRACKING_USERNAME": unquote(user),
        "MLFLOW_TRACKING_PASSWORD": unquote(password or ""),
    }
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), login
