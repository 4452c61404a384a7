"""The guard that keeps credentials out of what leaves this machine."""

from distrain_nb.secrets.guard import HIDDEN, STORED, is_secret, refuse_secret_files, refuse_secrets
from distrain_nb.secrets.names import is_secret_name
from distrain_nb.secrets.redaction import (
    redacted,
    redacted_options,
    variables_in,
    without_secret,
)

__all__ = [
    "HIDDEN",
    "STORED",
    "is_secret",
    "is_secret_name",
    "redacted",
    "redacted_options",
    "refuse_secret_files",
    "refuse_secrets",
    "variables_in",
    "without_secret",
]
