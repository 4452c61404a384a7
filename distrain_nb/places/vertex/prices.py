"""Prices of custom training, by the SKUs of Cloud Billing.

A job on demand is billed by the SKUs of Vertex AI; one on Spot or Flex-start machines by those of
Compute Engine, with Vertex AI's management fee. https://cloud.google.com/vertex-ai/pricing
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from google.auth.exceptions import GoogleAuthError

from distrain_nb.backends.price import HOURS_A_MONTH, NoPrice, Price
from distrain_nb.backends.price_list import cached_answer
from distrain_nb.layout import Layout
from distrain_nb.layout.resolved import ResolvedPool, resolve
from distrain_nb.places.vertex.rest import Api
from distrain_nb.places.vertex.settings import login_of

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject, Unknown

SOURCE = "Cloud Billing"
VERTEX_AI, MACHINES = "C7E2-9256-1C43", "6F81-5844-456A"  # Vertex AI and Compute Engine
PAGE = 5000
ON_DEMAND, FEE, SPOT, FLEX = "on demand", "fee", "SPOT", "FLEX_START"
WITHOUT = "storage and traffic are not counted"
WITHOUT_ON_SPOT = f"local SSDs, {WITHOUT}"

_PLACED = r"(?: (?:running )?in (?P<where>.+))?"
_FORMS = (
    (ON_DEMAND, rf"Vertex AI: Training/Pipelines on (?P<what>.+?){_PLACED}"),
    (FEE, rf"Vertex AI: Training/Pipelines management fee on (?P<what>.+?){_PLACED}"),
    (SPOT, rf"Spot Preemptible (?P<what>.+?){_PLACED}"),
    (SPOT, rf"(?P<what>.+?) attached to Spot Preemptible VMs{_PLACED}"),
    (FLEX, rf"DWS Defined Duration (?P<what>.+?){_PLACED}"),
    (FLEX, rf"(?P<what>.+?) attached to DWS Defined Duration VMs{_PLACED}"),
)
FORMS = tuple((kind, re.compile(form, re.IGNORECASE)) for kind, form in _FORMS)
_LEFT_OUT = {"instance", "predefined", "gpu", "nvidia", "tesla"}
_HOURS = {"h": 1.0, "GiBy.h": 1.0, "GBy.h": 1.0, "GiBy.mo": HOURS_A_MONTH, "GBy.mo": HOURS_A_MONTH}

# What SKUs call machines and GPUs that have another name in requests.
_SERIES: dict[str, tuple[str, ...]] = {
    "a3-mega": ("a3plus", "a3 mega"),
    "a3-ultra": ("a3ultra", "a3 ultra"),
    "c2-": ("compute optimized", "c2"),
    "m1-": ("memory optimized", "m1"),
}
_GPUS = {"h100 mega 80gb": ("h100 mega 80gb", "h100 80gb plus")}
_DISKS = {"pd-ssd": "ssd backed pd capacity", "pd-standard": "storage pd capacity"}
DISK_TYPE, DISK_GB = "pd-ssd", 100  # of a pool that names none


def price(layout: Layout) -> Price:
    """Return what a layout's machines cost an hour in its region. Raises NoPrice."""
    if not layout.region:
        raise NoPrice("no region is chosen")
    kind = layout.scheduling if layout.scheduling in (SPOT, FLEX) else ON_DEMAND
    listed = _List(kind, layout.region)
    hourly = sum(pool.pool.replicas * listed.machine(pool) for pool in resolve(layout).pools)
    currency = str(listed.currency)
    return Price(hourly, currency, SOURCE, note=WITHOUT_ON_SPOT if layout.spot else WITHOUT)


class _List:
    """The SKUs of one way to be billed, in a region."""

    def __init__(self, kind: str, region: str) -> None:
        self._kind, self._region = kind, region
        self.currency = ""
        kinds = (
            [(ON_DEMAND, VERTEX_AI)] if kind == ON_DEMAND else [(FEE, VERTEX_AI), (kind, MACHINES)]
        )
        self._books = [self._book(name, service) for name, service in kinds]
        disks = self._book(ON_DEMAND, VERTEX_AI)
        self._disks = {name: disks[name] for name in _DISKS.values() if name in disks}

    def _book(self, kind: str, service: str) -> Mapping[str, float]:
        """Return the prices there of all resources, by their names."""
        listed: Unknown = cached_answer(f"skus-{service}", lambda: _asked(service))
        self.currency = listed["currency"]
        rows = (row for row in listed["skus"] if row[0] == kind)
        return {name: amount for _, name, regions, amount in rows if self._is_in(regions)}

    def _is_in(self, regions: list[str]) -> bool:
        return self._region in regions or "global" in regions

    def machine(self, pool: ResolvedPool) -> float:
        """Return the price of a replica an hour. Raises NoPrice."""
        row, name = pool.machine, pool.pool.machine or ""
        if row is None or row.vcpu is None or row.memory_gb is None:
            raise NoPrice(f"the tables have no machine {name}" if name else "no machine is chosen")
        special = (names for start, names in _SERIES.items() if name.startswith(start))
        names = next(special, (row.series,))
        gpu = pool.pool.accelerator or row.builtin_accelerator
        count = pool.pool.accelerator_count if pool.pool.accelerator else None
        count = (row.builtin_accelerator_count or 0) if count is None else count
        hourly = row.vcpu * self._price([f"{it} core" for it in names], name)
        hourly += row.memory_gb * self._price([f"{it} ram" for it in names], name)
        if gpu and count:
            called = plain(gpu.replace("_", " "))
            hourly += count * self._price(_GPUS.get(called, (called,)), gpu)
        return hourly + self._disk(pool)

    def _price(self, names: list[str] | tuple[str, ...], asked: str) -> float:
        """Return the sum of all that is billed for a resource, by any of its names."""
        total = 0.0
        for book in self._books:
            amounts = [book[name] for name in names if name in book]
            if not amounts:
                way = "" if self._kind == ON_DEMAND else f" with {self._kind}"
                raise NoPrice(f"{SOURCE} has no SKU for {asked} in {self._region}{way}")
            total += amounts[0]
        return total

    def _disk(self, pool: ResolvedPool) -> float:
        name = _DISKS.get(pool.pool.disk_type or DISK_TYPE, "")
        if name not in self._disks:
            raise NoPrice(f"{SOURCE} has no SKU for disks of {pool.pool.disk_type or DISK_TYPE}")
        return (pool.pool.disk_gb or DISK_GB) * self._disks[name]


def _asked(service: str) -> JsonObject:
    """Ask for the SKUs of a service that train. Raises NoPrice, DistrainError."""
    if not login_of(os.environ):
        raise NoPrice("no login for Google Cloud; run gcloud auth application-default login")
    try:
        api = Api("cloudbilling")
        skus = list(_pages(api, service))
    except GoogleAuthError as error:
        raise NoPrice(
            f"the login is refused: {error} Log in: gcloud auth application-default login"
        ) from None
    currencies = {currency for currency, _ in skus}
    if len(currencies) != 1:
        raise NoPrice(f"{SOURCE} lists no SKU of training for the service {service}")
    return {"currency": currencies.pop(), "skus": [row for _, row in skus]}


def _pages(api: Api, service: str) -> Iterator[tuple[str, list[Unknown]]]:
    token = ""
    while True:
        answer = api.get(f"v1/services/{service}/skus?pageSize={PAGE}&pageToken={token}")
        if answer.status_code != 200:
            raise NoPrice(f"{SOURCE}: {api.reason(answer)}")
        page = answer.json()
        for sku in page.get("skus", ()):
            yield from _row(sku)
        token = page.get("nextPageToken", "")
        if not token:
            return


def _row(sku: Mapping[str, Unknown]) -> Iterator[tuple[str, list[Unknown]]]:
    """Yield the currency, and kind, resource, regions and price an hour, of a SKU that is for
    training."""
    text = sku["description"]
    matches = ((kind, form.fullmatch(text)) for kind, form in FORMS)
    kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
    if match is None or not sku.get("pricingInfo"):
        return
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    hours = _HOURS.get(expression["usageUnit"])
    unit = expression["tieredRates"][-1]["unitPrice"]
    amount = int(unit.get("units") or 0) + int(unit.get("nanos") or 0) / 1e9
    if hours and amount:  # some have no price: they stand for commitments
        regions = list(sku.get("serviceRegions", ()))
        yield unit["currencyCode"], [kind, plain(match["what"]), regions, amount / hours]


def plain(name: str) -> str:
    """Return what a resource is called, without words that some SKUs have: `a3 core`, `t4`."""
    words = name.lower().replace("-", " ").split()
    return " ".join(word for word in words if word not in _LEFT_OUT)
