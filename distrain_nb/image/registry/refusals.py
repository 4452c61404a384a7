"""A registry's refusal: its own words, and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.image.registry.auth import AuthenticationError
from distrain_nb.image.registry.credentials import advice
from distrain_nb.image.registry.retry import RegistryError, check_busy

if TYPE_CHECKING:
    import httpx

_LONGEST_REASON = 500


def check(response: httpx.Response, action: str, allowed: tuple[int, ...], registry: str) -> None:
    """Raise RegistryError, with the registry's words and a way out, for any other status."""
    if response.status_code in allowed:
        return
    check_busy(response, action)
    response.read()
    if response.status_code in (401, 403):
        host = response.url.netloc.decode()
        if response.history and host != response.history[0].url.netloc.decode():
            raise AuthenticationError(
                f"{action}: {host}, to which {registry} redirects, doesn't allow it "
                f"({reason(response)})."
            )
        raise AuthenticationError(
            f"{action}: {registry} doesn't allow it ({reason(response)}). {advice(registry)}"
        )
    raise RegistryError(f"{action}: {reason(response)}{_hint(response)}", response.status_code)


def _hint(response: httpx.Response) -> str:
    if response.status_code != 404:
        return ""
    if response.request.method == "GET":
        return ". Is the name right? Some registries also hide what you may not read: log in."
    return ". Create the repository first: this registry does not create it on a push."


def reason(response: httpx.Response) -> str:
    """Return the registry's own words, else the status."""
    try:
        error = response.json()["errors"][0]
        words = f"{error.get('code', '')} {error.get('message', '')}".strip()
    except (ValueError, LookupError, TypeError, AttributeError):
        words = response.reason_phrase
    return f"{response.status_code} {words}".strip()[:_LONGEST_REASON]
