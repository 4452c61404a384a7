"""The Jupyter server extension: what a page asks about runs, answered while the kernel computes.

Jupyter finds it by the file that the wheel puts into `etc/jupyter/jupyter_server_config.d`, or by
`jupyter server extension enable distrain_nb.server`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "distrain_nb.server"}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    from distrain_nb.server.routes import routes

    log = logging.getLogger("distrain_nb")  # what we log is Jupyter's to show
    log.setLevel(server.log.level)
    for handler in server.log.handlers:
        log.addHandler(handler)
    web = server.web_app
    web.add_handlers(".*$", routes(web.settings["base_url"]))  # type: ignore[no-untyped-call]


__all__ = ["_jupyter_server_extension_points", "_load_jupyter_server_extension"]
