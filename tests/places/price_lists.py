# ruff: noqa: E501  (rows of tables)
"""Cloud Billing's SKUs and AWS's Price List, as small HTTP servers with answers of their shape.

Prices of the A3 machines, their management fees and Flex-start SKUs are those that were billed in
us-central1 in August 2025; of SageMaker those that `GetProducts` gave in August 2026. Others are
of the same size as in the lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.places.stand_ins import Server, serving

VERTEX, COMPUTE = "C7E2-9256-1C43", "6F81-5844-456A"
IOWA, AMERICAS = ("us-central1",), ("us-central1", "us-east1", "us-west1")
TRAINING, FEE = (
    "Vertex AI: Training/Pipelines on ",
    "Vertex AI: Training/Pipelines management fee on ",
)
# Description, unit, price, regions, usage type.
SKUS: Mapping[str, tuple[tuple[str, str, float, tuple[str, ...], str], ...]] = {
    VERTEX: (
        (f"{TRAINING}NVIDIA H100 80GB in Iowa", "h", 11.2660332, IOWA, "OnDemand"),
        (f"{TRAINING}A3 Instance Core in Iowa", "h", 0.0293227, IOWA, "OnDemand"),
        (f"{TRAINING}A3 Instance RAM in Iowa", "GiBy.h", 0.0025534, IOWA, "OnDemand"),
        (f"{TRAINING}SSD backed PD Capacity", "GiBy.mo", 0.1955, ("global",), "OnDemand"),
        (f"{FEE}NVIDIA H100 80GB in Iowa", "h", 1.4694826, IOWA, "OnDemand"),
        (f"{FEE}A3 Instance Core in Iowa", "h", 0.0038247, IOWA, "OnDemand"),
        (f"{FEE}A3 Instance RAM in Iowa", "GiBy.h", 0.0003331, IOWA, "OnDemand"),
        (f"{TRAINING}N1 Predefined Instance Core running in Iowa", "h", 0.036, IOWA, "OnDemand"),
        (f"{TRAINING}N1 Predefined Instance Ram running in Iowa", "GiBy.h", 0.0049, IOWA, "OnDemand"),
        (f"{TRAINING}N1 Predefined Instance Core running in Belgium", "h", 0.04, ("europe-west1",), "OnDemand"),
        (f"{TRAINING}N1 Predefined Instance Ram running in Belgium", "GiBy.h", 0.0054, ("europe-west1",), "OnDemand"),
        (f"{TRAINING}Nvidia Tesla T4 GPU running in Iowa", "h", 0.4025, IOWA, "OnDemand"),
        ("Vertex AI: Online/Batch Prediction Nvidia H100 80gb GPU running in Iowa", "h", 11.2660332, IOWA, "OnDemand"),
    ),
    COMPUTE: (
        ("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas", "h", 4.200761, AMERICAS, "OnDemand"),
        ("DWS Defined Duration A3 Core running in Americas", "h", 0.010934, AMERICAS, "OnDemand"),
        ("DWS Defined Duration A3 Ram running in Americas", "GiBy.h", 0.000952, AMERICAS, "OnDemand"),
        ("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas", "h", 2.253, AMERICAS, "Preemptible"),
        ("Spot Preemptible A3 Instance Core running in Americas", "h", 0.005864, AMERICAS, "Preemptible"),
        ("Spot Preemptible A3 Instance Ram running in Americas", "GiBy.h", 0.000511, AMERICAS, "Preemptible"),
        ("A3 Instance Core running in Americas", "h", 0.029322706, AMERICAS, "OnDemand"),
        ("Reserved Nvidia H100 80GB GPU in Americas", "h", 0.0, AMERICAS, "Commit1Yr"),
    ),
}  # fmt: skip


def sku(number: int, service: str, row: tuple[str, str, float, tuple[str, ...], str]) -> Any:
    """A SKU as `services.skus.list` gives it."""
    description, unit, price, regions, usage = row
    nanos = round(price * 1e9)
    rate = {"startUsageAmount": 0, "unitPrice": {
        "currencyCode": "USD", "units": str(nanos // 10**9), "nanos": nanos % 10**9}}  # fmt: skip
    expression = {
        "usageUnit": unit, "displayQuantity": 1, "tieredRates": [rate],
        "usageUnitDescription": {"h": "hour"}.get(unit, "gibibyte hour"), "baseUnit": "s",
        "baseUnitDescription": "second", "baseUnitConversionFactor": 3600,
    }  # fmt: skip
    return {
        "name": f"services/{service}/skus/{number:04X}-0000-0000", "skuId": f"{number:04X}-0000-0000",
        "description": description,
        "category": {"serviceDisplayName": "Vertex AI", "resourceFamily": "ApplicationServices",
                     "resourceGroup": "Training", "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"summary": "", "pricingExpression": expression,
                         "currencyConversionRate": 1, "effectiveTime": "2026-11-01T00:00:00Z"}],
        "serviceProviderName": "Google", "geoTaxonomy": {"type": "REGIONAL", "regions": list(regions)},
    }  # fmt: skip


@contextmanager
def cloud_billing(token: str, refusal: str = "") -> Iterator[Server]:
    """The catalogue, in pages of five SKUs; `refusal` is what it says instead."""

    def answer(request: BaseHTTPRequestHandler, _: str) -> tuple[int, Any, dict[str, str]]:
        kind = {"Content-Type": "application/json"}
        if request.headers.get("Authorization") != f"Bearer {token}":
            return 401, {"error": {"code": 401, "message": "no token"}}, kind
        if refusal:
            return 403, {"error": {"code": 403, "message": refusal, "status": "x"}}, kind
        url = urlsplit(request.path)
        first = int(parse_qs(url.query).get("pageToken", ["0"])[0] or 0)
        service = url.path.split("/")[3]
        rows = SKUS[service][first : first + 5]
        page = {"skus": [sku(first + n, service, row) for n, row in enumerate(rows)]}
        more = {"nextPageToken": str(first + 5)} if first + 5 < len(SKUS[service]) else {}
        return 200, {**page, "nextPageToken": "", **more}, kind

    with serving(answer) as server:
        yield server


# Component, instance, region, prefix of usage, price.
PRODUCTS = (
    ("Training", "ml.m5.large", "us-east-1", "USE1-Train", "0.1150000000", "JMCWJEAPVJNFJ5P4"),
    ("Hosting", "ml.m5.large", "us-east-1", "USE1-Host", "0.1350000000", "AAAAAAAAAAAAAAA1"),
    ("Training", "ml.m5.large", "eu-west-1", "EU-Train", "0.1280000000", "AAAAAAAAAAAAAAA2"),
    ("Training", "ml.g5.2xlarge", "us-east-1", "USE1-Train", "1.5150000000", "AAAAAAAAAAAAAAA3"),
    ("Training", "ml.g6.xlarge", "ap-northeast-1", "APN1-Train", "1.6340000000", "AAAAAAAAAAAAAAA4"),
)  # fmt: skip


def product(
    component: str, instance: str, region: str, usage: str, price: str, number: str
) -> dict[str, Any]:
    """A product as a text of `PriceList` has it."""
    code, rate = f"{number}.JRTCKXETXF", f"{number}.JRTCKXETXF.6YS6EN2CT7"
    dimension = {
        "unit": "Hrs", "endRange": "Inf", "beginRange": "0", "rateCode": rate, "appliesTo": [],
        "description": f"${price} per {component} {instance} hour", "pricePerUnit": {"USD": price},
    }  # fmt: skip
    attributes = {
        "component": component, "platoinstancetype": component, "instanceName": instance,
        "instanceType": f"{instance}-{component}", "regionCode": region, "usagetype": f"{usage}:{instance}",
        "locationType": "AWS Region", "servicecode": "AmazonSageMaker", "operation": "RunInstance",
        "servicename": "Amazon SageMaker",
    }  # fmt: skip
    term = {
        "priceDimensions": {rate: dimension}, "sku": number, "offerTermCode": "JRTCKXETXF",
        "effectiveDate": "2026-08-01T00:00:00Z", "termAttributes": {},
    }  # fmt: skip
    return {
        "product": {"productFamily": "ML Instance", "attributes": attributes, "sku": number},
        "serviceCode": "AmazonSageMaker", "terms": {"OnDemand": {code: term}},
        "version": "20260811000000", "publicationDate": "2026-08-11T00:00:00Z",
    }  # fmt: skip


@contextmanager
def aws_prices(refused: bool = False) -> Iterator[Server]:
    """`GetProducts` in JSON 1.1, a product a page."""

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        kind = {"Content-Type": "application/x-amz-json-1.1"}
        assert request.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
        if refused:
            who = "User: arn:aws:iam::123456789012:user/ada is not authorized to perform"
            message = f"{who}: pricing:GetProducts"
            return 400, {"__type": "AccessDeniedException", "Message": message}, kind
        asked = json.loads(body)
        assert asked["ServiceCode"] == "AmazonSageMaker"
        filters = {it["Field"]: it["Value"] for it in asked["Filters"]}
        assert all(it["Type"] == "TERM_MATCH" for it in asked["Filters"])
        found = [product(*row) for row in PRODUCTS]
        found = [it for it in found if filters.items() <= it["product"]["attributes"].items()]
        first = int(asked.get("NextToken", 0))
        page = {
            "FormatVersion": "aws_v1",
            "PriceList": [json.dumps(it) for it in found[first : first + 1]],
        }
        more = {"NextToken": str(first + 1)} if first + 1 < len(found) else {}
        return 200, {**page, **more}, kind

    with serving(answer) as server:
        yield server
