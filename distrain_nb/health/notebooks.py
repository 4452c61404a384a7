"""The Jupyter servers of this user, and whether they have the extension."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from distrain_nb.backends.checks import Check, Health, installed
from distrain_nb.layout.releases import older

ASK_S = 5.0
SESSION_VARIABLE = "JPY_SESSION_NAME"  # jupyter_server tells kernels by it which notebook is theirs
REMEDY = (
    "install distrain-nb where the server is installed and start it again; until then Stop waits "
    "for the cell"
)


def jupyter() -> Iterator[Check]:
    """Yield the packages that the kernel needs to draw, and every server that runs."""
    drawn = ", ".join(f"{name} {installed(name)}" for name in ("ipywidgets", "anywidget"))
    yield Check("widgets", Health.GOOD, drawn)
    yield from _deaf_kernel()
    yield from _server_documents()
    servers = list(_servers())
    if not servers:
        yield Check("servers", Health.GOOD, "this kernel sees no Jupyter server of this user")
    for server in servers:
        yield _extension(server)


def _deaf_kernel() -> Iterator[Check]:
    """Check for releases that overlook requests: https://github.com/ipython/ipykernel/issues/1554."""
    number = installed("ipykernel")
    if older(number, "7.4") and not older(number, "7.0"):
        message = f"{number}: sometimes misses a request, and cells stay at [*]"
        remedy = "Kernel, Reconnect to Kernel runs them; ipykernel 7.4 has the repair"
        yield Check("ipykernel", Health.MISSING, message, remedy)


def _server_documents() -> Iterator[Check]:
    """Yield where the server runs the cells, a notebook that came from a file stays untrusted."""
    number = installed("jupyter-server-documents")
    if number is None:
        return
    effect = "runs cells on the server, and marks none as trusted"
    yield Check("jupyter-server-documents", Health.GOOD, f"{number}: {effect}")
    session = os.environ.get(SESSION_VARIABLE, "")
    trusted = _is_trusted(Path(session)) if session else None
    remedy = "File, Trust Notebook; or jupyter trust NOTEBOOK"
    if trusted is None:
        message = (
            "can't find out whether this notebook is trusted; without trust it shows no widgets"
        )
        yield Check("trust", Health.MISSING, message, remedy)
    elif trusted:
        yield Check("trust", Health.GOOD, f"{Path(session).name} is trusted")
    else:
        message = f"{Path(session).name} is not trusted: it shows no widgets"
        yield Check("trust", Health.MISSING, message, remedy)


def _is_trusted(notebook: Path) -> bool | None:
    """Return whether its file is signed; None where that can't be told."""
    try:
        import nbformat
        from nbformat.sign import NotebookNotary

        notary = NotebookNotary()  # type: ignore[no-untyped-call]
        if not Path(notary.db_file).exists():
            return False
        content = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
        return bool(notary.check_signature(content))  # type: ignore[no-untyped-call]
    except Exception:  # a file elsewhere, a notebook of another form, a store that is locked
        return None


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
    except httpx.HTTPError as error:
        return Check("server", Health.MISSING, f"{url} does not answer: {type(error).__name__}")
    if answer.status_code == httpx.codes.OK:
        return Check("server", Health.GOOD, f"{url} has the extension, {answer.json()['version']}")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return Check("server", Health.MISSING, f"{url} has no distrain-nb", REMEDY)
    return Check(
        "server", Health.MISSING, f"{url} answers {answer.status_code}, so it can't be asked"
    )
