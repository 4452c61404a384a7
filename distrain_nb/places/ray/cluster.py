"""The Ray cluster that there is: its nodes, what the form and Tab offer of them, and what
`%distrain doctor` says of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from distrain_nb.backends.checks import Check, Health
from distrain_nb.backends.remote.service import Denied
from distrain_nb.config import Config
from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.ray.dashboard import BRIEF_S, DEFAULT, LOGIN, Dashboard, Headers, is_http
from distrain_nb.places.ray.demand import GROUP, TYPE, Node

KEEP_S = 10.0
_answers: dict[str, tuple[float, list[Node]]] = {}  # by address: when it was asked, and its answer


def nodes(address: str, credentials: str, environ: Mapping[str, str]) -> list[Node] | None:
    """Return a cluster's nodes; None for an address that only Ray's package knows. Raises
    DistrainError where there is no answer within seconds."""
    if not is_http(address):
        return None
    headers = Headers.find(credentials, environ)
    nodes_there = Dashboard(address.rstrip("/"), headers, BRIEF_S).nodes()
    _answers[address] = time.monotonic(), nodes_there
    return nodes_there


def offers(layout: Layout, path: str) -> Iterator[Choice]:  # noqa: ARG001
    """Yield worker groups, accelerators and their counts that the cluster of the settings has."""
    field = path.partition(".")[2]
    if field not in ("machine", "accelerator", "accelerator_count"):
        return
    try:
        nodes_there = _lately()
    except DistrainError:
        return
    if field == "machine":
        yield Choice("node", "node · any")
        for name in sorted({node.labels[GROUP] for node in nodes_there if GROUP in node.labels}):
            count = sum(node.labels.get(GROUP) == name for node in nodes_there)
            yield Choice(name, f"{name} · {count} node{'s' * (count != 1)}")
    elif field == "accelerator":
        names = {name for node in nodes_there for name in node.total if name.startswith(TYPE)}
        for name in sorted(names):
            yield Choice(name.removeprefix(TYPE), name.removeprefix(TYPE))
    else:
        for most in sorted({int(node.total.get("GPU", 0)) for node in nodes_there} - {0}):
            yield Choice(most, f"{most} · all of a node")


def _lately() -> list[Node]:
    config = Config.load()
    settings = config.of_backends
    address = settings.get("address") or os.environ.get("RAY_API_SERVER_ADDRESS") or DEFAULT
    asked, nodes_there = _answers.get(address, (0.0, []))
    if asked and time.monotonic() < asked + KEEP_S:
        return nodes_there
    return nodes(address, settings.get("credentials", ""), os.environ) or []


def about(address: str, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield which cluster answers, and what it has."""
    if not is_http(address):
        return
    credentials = Config.load().of_backends.get("credentials", "")
    try:
        dashboard = Dashboard(address, Headers.find(credentials, environ), BRIEF_S)
        ray, python = dashboard.version()
        nodes_there = dashboard.nodes()
    except DistrainError as error:
        remedy = "set address to the dashboard's URL; `ray start --head` prints it"
        remedy = LOGIN if isinstance(error, Denied) else remedy
        yield Check("cluster", Health.MISSING, str(error).partition(f"\n{LOGIN}")[0], remedy)
        return
    sums = {name: sum(node.total.get(name, 0) for node in nodes_there) for name in ("CPU", "GPU")}
    has = f"{len(nodes_there)} nodes, {sums['CPU']:g} CPUs, {sums['GPU']:g} GPUs"
    yield Check("cluster", Health.GOOD, f"Ray {ray} on Python {python}, {has}")
