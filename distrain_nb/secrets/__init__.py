"""The guard that keeps credentials out of what leaves this machine."""

from distrain_nb.secrets.guard import (
    HIDDEN,
    STORED,
    is_secret,
    refuse_secret_files,
    refuse_secret_texts,
    refuse_secrets,
    secret_in_file,
)
from distrain_nb.secrets.leaving import Guard
from distrain_nb.secrets.names import is_secret_by_name, is_secret_name
from distrain_nb.secrets.redaction import (
    env_values,
    redacted,
    redacted_options,
    redacted_source,
    redacted_word,
)

__all__ = [
    "HIDDEN",
    "STORED",
    "Guard",
    "env_values",
    "is_secret",
    "is_secret_by_name",
    "is_secret_name",
    "redacted",
    "redacted_options",
    "redacted_source",
    "redacted_word",
    "refuse_secret_files",
    "refuse_secret_texts",
    "refuse_secrets",
    "secret_in_file",
]
