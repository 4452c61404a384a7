"""The guard that keeps credentials out of what leaves this machine."""

from distrain_nb.image.secrets.guard import refuse_secrets
from distrain_nb.image.secrets.names import is_secret_name

__all__ = ["is_secret_name", "refuse_secrets"]
