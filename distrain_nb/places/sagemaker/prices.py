"""Prices of training instances, by AWS's Price List.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from distrain_nb.backends.price import NoPrice, Price
from distrain_nb.backends.price_list import cached_answer
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.client import client, plain_words
from distrain_nb.places.sagemaker.settings import login_of

if TYPE_CHECKING:
    from distrain_nb.types import JsonObject, Unknown

SERVICE, TRAINING, HOURS = "AmazonSageMaker", "Training", ("hrs", "hours", "hour")
SOURCE = "AWS's Price List"
NO_SPOT = "managed spot instances have no list price"
WITHOUT = "storage is not counted"
# The service answers in few regions, https://docs.aws.amazon.com/general/latest/gr/billing.html.
_CHINA = "cn-"
_ANSWERS, _ANSWERS_IN_CHINA = "us-east-1", "cn-northwest-1"


def price(layout: Layout) -> Price:
    """Return what a layout's instances cost an hour in its region: on spot instances at most that,
    for which AWS lists no price. Raises NoPrice, DistrainError."""
    region = layout.region
    if not region:
        raise NoPrice("no region is chosen")
    hourly, currencies = 0.0, set()
    for _, pool in layout.pools():
        if not pool.machine:
            raise NoPrice("no instance type is chosen")
        listed = _listed(pool.machine, region)
        if region not in listed:
            raise NoPrice(f"{SOURCE} has no training on {pool.machine} in {region}")
        amount, currency = listed[region]
        hourly += pool.replicas * amount
        currencies.add(currency)
    if len(currencies) != 1:
        raise NoPrice(f"{SOURCE} has no single currency for this layout")
    note = f"{NO_SPOT}; {WITHOUT}" if layout.spot else WITHOUT
    return Price(hourly, currencies.pop(), SOURCE, ceiling=layout.spot, note=note)


def _listed(machine: str, region: str) -> dict[str, tuple[float, str]]:
    """Return the price of a training instance an hour, and its currency, by region."""
    china = region.startswith(_CHINA)

    def ask() -> JsonObject:
        if not login_of(os.environ):
            raise NoPrice("no login for AWS; run aws configure or aws sso login")
        with plain_words(f"ask {SOURCE} for {machine} (pricing:GetProducts)"):
            return {region: list(entry) for region, entry in _asked(machine, china=china)}

    listed: Unknown = cached_answer(f"{machine}-china" if china else machine, ask)
    return {place: (amount, currency) for place, (amount, currency) in listed.items()}


def _asked(machine: str, *, china: bool) -> Iterator[tuple[str, tuple[float, str]]]:
    pricing: Unknown = client("pricing", _ANSWERS_IN_CHINA if china else _ANSWERS, {})
    named = {"Type": "TERM_MATCH", "Field": "instanceName", "Value": machine}
    pages = pricing.get_paginator("get_products").paginate(ServiceCode=SERVICE, Filters=[named])
    for page in pages:
        for text in page["PriceList"]:
            yield from _hourly(json.loads(text))


def _hourly(product: Unknown) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield region, price and currency of a product that is training on demand."""
    attributes = product["product"]["attributes"]
    if TRAINING not in (attributes.get("component"), attributes.get("platoinstancetype")):
        return
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            for currency, amount in dimension["pricePerUnit"].items():
                if dimension["unit"].lower() in HOURS and float(amount):  # others are placeholders
                    yield attributes["regionCode"], (float(amount), currency)
