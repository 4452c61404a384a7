"""Trying again when a registry is busy, broken for a moment, or cut off."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

from distrain_nb.errors import ImageError

T = TypeVar("T")

_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
_BUSY = frozenset({408, 429, 500, 502, 503, 504})


class RegistryError(ImageError):
    """A registry can't be reached, or refuses; `status` is its HTTP status, 0 for none."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class Unreachable(RegistryError):
    """Nobody answers at the registry's address, or there is no such address: `reason` says it."""

    def __init__(self, action: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{action}: {reason}")


class DigestMismatch(RegistryError):
    """Content is not what its digest says: it was damaged where it lies or on its way."""


class TryAgain(RegistryError):
    """A failure that may pass; `after` is the pause in seconds that the registry asks for."""

    def __init__(self, message: str, status: int = 0, after: float = 0.0) -> None:
        self.after = after
        super().__init__(message, status)


def with_retries(label: str, action: Callable[[], T], attempts: int | None = None) -> T:
    """Run `action` until it succeeds, `attempts` times or a few at most, with growing pauses.

    Dropped connections, DigestMismatch and TryAgain are tried again. The last failure is raised
    as a RegistryError that begins with `label`: Unreachable where nobody has answered at all.
    """
    attempts, pause = attempts or _ATTEMPTS, _FIRST_PAUSE_S
    for remaining in reversed(range(attempts)):
        try:
            return action()
        except (httpx.TransportError, DigestMismatch, TryAgain) as error:
            if not remaining:
                raise _final(label, error, attempts) from None
            least = error.after if isinstance(error, TryAgain) else 0.0
            time.sleep(min(max(least, pause * random.uniform(0.5, 1.0)), _LONGEST_PAUSE_S))
            pause *= 2
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise RegistryError(f"{label}: {describe_failure(error)}") from error
    raise AssertionError("unreachable")


def check_busy(response: httpx.Response, action: str) -> None:
    """Raise TryAgain for the statuses that say so, with the pause that was asked for."""
    if response.status_code in _BUSY:
        header = response.headers.get("Retry-After", "")
        after = float(header) if header.isascii() and header.isdigit() else 0.0
        raise TryAgain(f"{action}: {response.status_code}", response.status_code, after)


def describe_failure(error: Exception) -> str:
    """Describe a failed transfer that a retry wouldn't help."""
    if isinstance(error, httpx.TooManyRedirects):
        return "the registry redirects in a loop. Is the name of the registry right?"
    return str(error) or type(error).__name__


def _final(action: str, error: Exception, attempts: int) -> RegistryError:
    if isinstance(error, DigestMismatch):
        return error
    if isinstance(error, httpx.ConnectError):
        host, why = error.request.url.host, _ERROR_NUMBER.sub("", str(error))
        return Unreachable(action, f"{host} can't be reached from this machine ({why})")
    status = error.status if isinstance(error, RegistryError) else 0
    why = str(error) or type(error).__name__
    return RegistryError(f"{action} failed {attempts} times; the last time: {why}", status)
