"""What channels of notices need and no settings file keeps: the address of a webhook, the password
of a mail server.

`%distrain config NAME` asks for it; a variable comes first.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from distrain_nb.config import brief, own_home, private_home
from distrain_nb.errors import OptionError, StoreError
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.fields import Damaged, load_texts
from distrain_nb.worker.files.folder import SECRETS_FILE

SECRET_VARIABLES = {"webhook": "DISTRAIN_WEBHOOK", "smtp_password": "DISTRAIN_SMTP_PASSWORD"}


def secret(name: str) -> str:
    """Return one of the secrets, or nothing."""
    with suppress(OSError, Damaged):
        secrets = load_texts(own_home() / SECRETS_FILE)
        return os.environ.get(SECRET_VARIABLES[name]) or secrets.get(name, "")
    return os.environ.get(SECRET_VARIABLES[name], "")


def keep_secret(name: str, value: str) -> None:
    """Keep a secret in a file for this user alone; forget it where it is empty.

    Raises OptionError, which doesn't have the value; StoreError.
    """
    if name == "webhook" and value and not is_web_address(value):
        raise OptionError("invalid webhook: expected an address that begins with https://")
    path = private_home() / SECRETS_FILE
    secrets: dict[str, str] = {}
    with suppress(OSError, Damaged):
        secrets = load_texts(path)
    secrets = {key: text for key, text in {**secrets, name: value}.items() if text}
    try:
        mask = os.umask(0o077)  # so that no draft of it is open to others, not for a moment
        try:
            replace_file(path, json.dumps(secrets).encode())
        finally:
            os.umask(mask)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {brief(error)}") from None


def is_web_address(text: str) -> bool:
    """Return whether it is a web address; without TLS only one of this machine."""
    from urllib.parse import urlsplit

    try:
        address = urlsplit(text)
    except ValueError:
        return False
    is_here = address.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(address.hostname) and address.scheme in ("https", *(["http"] if is_here else []))
