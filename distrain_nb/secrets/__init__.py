"""The guard that keeps credentials out of what leaves this machine."""

from distrain_nb.secrets.guard import HIDDEN, STORED, is_secret, refuse_secrets
from distrain_nb.secrets.names import is_secret_name

__all__ = ["HIDDEN", "STORED", "is_secret", "is_secret_name", "refuse_secrets"]
