"""The Jupyter servers of this user, and whether they have the extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from distrain_nb.backends.checks import Check, Health, installed

if TYPE_CHECKING:
    from collections.abc import Iterator

ASK_S = 5.0
REMEDY = (
    "install distrain-nb where the server is installed and start it again; until then Stop waits "
    "for the cell"
)


def jupyter() -> Iterator[Check]:
    """The packages that the kernel needs to draw, and every server that runs."""
    drawn = ", ".join(f"{name} {installed(name)}" for name in ("ipywidgets", "anywidget"))
    yield Check("widgets", Health.GOOD, drawn)
    servers = list(_servers())
    if not servers:
        yield Check("servers", Health.GOOD, "none of this user runs where this kernel can see it")
    for server in servers:
        yield _extension(server)


def _servers() -> Iterator[dict[str, Any]]:
    try:
        from jupyter_server.serverapp import list_running_servers
    except ImportError:  # a kernel's environment may lack it
        return
    yield from list_running_servers()


def _extension(server: dict[str, Any]) -> Check:
    """Ask the server, with the token that only its user can read."""
    url = str(server["url"])
    try:
        answer = httpx.get(
            f"{url}distrain/version",
            headers={"Authorization": f"token {server.get('token', '')}"},
            timeout=ASK_S,
            trust_env=False,
        )
    except httpx.HTTPError as wrong:
        return Check(url, Health.MISSING, f"does not answer: {type(wrong).__name__}")
    if answer.status_code == httpx.codes.OK:
        return Check(url, Health.GOOD, f"has the extension, {answer.json()['version']}")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return Check(url, Health.MISSING, "has no distrain-nb", REMEDY)
    return Check(url, Health.MISSING, f"answers {answer.status_code}, so it can't be asked")
