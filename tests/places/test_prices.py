"""Costs are those of a calculation by hand, against price lists of the services' own shapes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from distrain_nb import api
from distrain_nb.api import cost
from distrain_nb.backends import price_lookup
from distrain_nb.backends.cost import RunCost
from distrain_nb.backends.price import Money, NoPrice
from distrain_nb.backends.price_list import A_DAY_S, CACHE
from distrain_nb.backends.price_lookup import LOOKUP
from distrain_nb.backends.prices import price_of
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.places.sagemaker.jobs import observed
from distrain_nb.places.vertex import rest
from distrain_nb.ui.form import Form
from distrain_nb.ui.form import cost as of_form
from distrain_nb.worker.files.status import State, Status
from tests.conftest import eventually
from tests.places.price_lists import aws_prices, cloud_billing
from tests.places.stand_ins import Server, serving

EIGHT_H100 = "a3-highgpu-8g+8*H100_80GB,disk=pd-ssd:2000"
TOKEN = "of-a-service-account"


@pytest.fixture(scope="module")
def key() -> str:
    """A private key, for a login that asks a token server of ours."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.PKCS8
    none = serialization.NoEncryption()
    return private.private_bytes(serialization.Encoding.PEM, kind, none).decode()


@pytest.fixture
def google(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Server], None]]:
    """Log in to Google Cloud, whose catalogue is at a server; a busy machine has time for it."""
    monkeypatch.setattr(rest, "ASK_S", 600.0)
    answer = 200, {"access_token": TOKEN, "expires_in": 3600}, {"Content-Type": "application/json"}
    with serving(lambda request, body: answer) as tokens:
        account = {
            "type": "service_account", "client_email": "a@b.example", "private_key": key,
            "private_key_id": "1", "token_uri": f"http://{tokens.address}/",
        }  # fmt: skip
        (tmp_path / "account.json").write_text(json.dumps(account))

        def log_in(server: Server) -> None:
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
            name = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
            monkeypatch.setenv(name, f"http://{server.address}/")

        yield log_in


@pytest.fixture
def aws_login(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    def log_in(server: Server) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", f"http://{server.address}")

    return log_in


def vertex(machine: str, **options: str) -> Layout:
    return Layout.of("vertex", primary=machine, **{"region": "us-central1", **options})


Login = Callable[[Server], None]


def test_machines_of_vertex_cost_what_their_skus_add_up_to(google: Login) -> None:
    with cloud_billing(TOKEN) as server:
        google(server)
        disk = 2000 * 0.1955 / 730
        by_hand = 8 * 11.2660332 + 208 * 0.0293227 + 1872 * 0.0025534 + disk
        assert price_of(vertex(EIGHT_H100)).hourly == pytest.approx(by_hand)
        assert by_hand == pytest.approx(101.5429684)  # as it was billed
        flex = 8 * (4.200761 + 1.4694826) + 208 * (0.010934 + 0.0038247)
        flex += 1872 * (0.000952 + 0.0003331) + disk
        assert price_of(vertex(EIGHT_H100, scheduling="FLEX_START")).hourly == pytest.approx(flex)
        assert flex == pytest.approx(52.0306163 - 0.65753425)  # as billed, less its local SSDs
        spot = 8 * (2.253 + 1.4694826) + 208 * (0.005864 + 0.0038247)
        spot += 1872 * (0.000511 + 0.0003331) + disk
        assert price_of(vertex(EIGHT_H100, scheduling="SPOT")).hourly == pytest.approx(spot)
        two = price_of(vertex("n1-standard-8+1*T4", workers="3*n1-standard-8+1*T4"))
        each = 8 * 0.036 + 30 * 0.0049 + 0.4025 + 100 * 0.1955 / 730
        assert two.hourly == pytest.approx(4 * each)
        assert (two.currency, two.source) == ("USD", "Cloud Billing")
        assert len(server.asked) == 3 + 2  # pages of both services, and none again


def test_lists_are_kept_for_a_day(google: Login, home: Path) -> None:
    with cloud_billing(TOKEN) as server:
        google(server)
        price_of(vertex("n1-standard-8"))
        asked = len(server.asked)
        price_of(vertex("n1-standard-4"))
        assert len(server.asked) == asked
        for path in (home / CACHE).iterdir():
            os.utime(path, (0, path.stat().st_mtime - A_DAY_S))
        price_of(vertex("n1-standard-4"))
        assert len(server.asked) == 2 * asked


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (vertex("a2-highgpu-1g+1*A100"), "has no SKU for a2-highgpu-1g in us-central1"),
        (vertex("n1-standard-8+1*V100"), "has no SKU for NVIDIA_TESLA_V100 in us-central1"),
        (vertex("n1-standard-8", region="us-east1"), "no SKU for n1-standard-8 in us-east1"),
        (vertex("n1-standard-8", scheduling="SPOT"), "n1-standard-8 in us-central1 with SPOT"),
        (vertex("z9-huge-1"), "the tables have no machine z9-huge-1"),
    ],
)  # fmt: skip
def test_what_no_sku_is_for_has_no_price(google: Login, layout: Layout, why: str) -> None:
    with cloud_billing(TOKEN) as server:
        google(server)
        with pytest.raises(NoPrice, match=why):
            price_of(layout)


def test_who_may_not_ask_is_told_so(google: Login, aws_login: Login) -> None:
    with pytest.raises(NoPrice, match="no login for Google Cloud"):
        price_of(vertex("n1-standard-8"))
    sagemaker = Layout.of("sagemaker", workers="ml.m5.large", region="us-east-1")
    with pytest.raises(NoPrice, match="no login for AWS"):
        price_of(sagemaker)
    off = "Cloud Billing API has not been used in project 1 before or it is disabled."
    with cloud_billing(TOKEN, off) as server:
        google(server)
        with pytest.raises(NoPrice, match="Cloud Billing: Cloud Billing API has not been used"):
            price_of(vertex("n1-standard-8"))
    with aws_prices(refused=True) as server:
        aws_login(server)
        with pytest.raises(NoPrice, match="ada lacks the permission pricing:GetProducts"):
            price_of(sagemaker)


def test_instances_of_sagemaker_cost_what_training_on_them_does(aws_login: Login) -> None:
    with aws_prices() as server:
        aws_login(server)
        layout = Layout.of("sagemaker", workers="4*ml.m5.large", region="us-east-1")
        price = price_of(layout)
        assert price.hourly == pytest.approx(4 * 0.115)
        assert str(price.during(24 * 3600)) == "11.0 USD"
        assert len(server.asked) == 3
        assert price_of(layout.edited({"region": "eu-west-1"})).hourly == pytest.approx(4 * 0.128)
        assert len(server.asked) == 3  # one question has all regions
        spot = price_of(layout.edited({"scheduling": "SPOT"}))
        assert spot.ceiling
        assert "no list price" in spot.note
        with pytest.raises(NoPrice, match=r"no training on ml.g6.xlarge in us-east-1"):
            price_of(Layout.of("sagemaker", workers="ml.g6.xlarge", region="us-east-1"))


def test_what_sagemaker_bills_is_what_a_run_has_cost() -> None:
    """On spot instances fewer seconds than they ran; 109 s of one ml.m5.large were 0.00348 USD."""
    ended = observed({"TrainingJobStatus": "Completed", "BillableTimeInSeconds": 109})
    assert ended.billed == 109
    run = RunCost(hourly=0.115, currency="USD", ceiling=True, billed=ended.billed)
    status = Status(State.RUNNING).enter(State.RUNNING).enter(State.SUCCEEDED)
    spent = run.so_far(status, 0)
    assert spent is not None
    assert spent.amount == pytest.approx(0.003482, abs=1e-6)
    assert run.text(status, 0) == "0.0035 USD"


@pytest.fixture
def both(google: Login, aws_login: Login, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both lists, for which a busy machine has time."""
    for module, name in (
        (cost, "WAITED_S"),
        (cost, "LOOKED_S"),
        (price_lookup, "ANSWERED_WITHIN_S"),
    ):
        monkeypatch.setattr(module, name, 600.0)
    with cloud_billing(TOKEN) as billing, aws_prices() as pricing:
        google(billing)
        aws_login(pricing)
        yield


def priced(form: Form) -> bool:
    return bool((form.widget.view["cost"] or {}).get("sums"))


def test_a_form_has_its_prices_when_they_come(
    both: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_form, "SETTLED_S", 3600.0)
    form = Form(vertex("n1-standard-8+1*T4"), tmp_path)
    shown = form.widget.view["cost"]
    assert (shown["sums"], shown["note"]) == ([], "asking for prices…")
    monkeypatch.setattr(of_form, "SETTLED_S", 0.01)
    form.set("timeout", "24h")
    assert eventually(lambda: priced(form))
    shown = form.widget.view["cost"]
    assert shown["sums"] == [["0.86 USD", "per hour on demand"], ["20.7 USD", "for the time limit"]]
    assert shown["note"].startswith("By Cloud Billing; ")
    form.compare_regions()
    assert eventually(lambda: len(regions(form)) == 1)
    assert regions(form) == [["us-central1", "0.86 USD"]]
    form.set("primary.accelerator_count", "0")
    form.set("primary.accelerator", "")
    assert eventually(lambda: len(regions(form)) == 2)
    assert regions(form) == [["us-central1", "0.46 USD"], ["europe-west1", "0.51 USD"]]


def regions(form: Form) -> list[list[str]]:
    return [row for row in form.widget.view["cost"]["regions"] or () if row[1] != "…"]


def test_a_form_shows_spot_beside_on_demand(both: None, tmp_path: Path) -> None:
    form = Form(vertex(EIGHT_H100), tmp_path)
    assert eventually(lambda: len((form.widget.view["cost"] or {"sums": ()})["sums"]) == 2)
    assert form.widget.view["cost"]["sums"] == [
        ["102 USD", "per hour on demand"], ["33.9 USD", "per hour on spot machines"],
    ]  # fmt: skip
    form = Form("%%distrain --on sagemaker --workers 4*ml.m5.large --region us-east-1", tmp_path)
    assert eventually(lambda: len((form.widget.view["cost"] or {"sums": ()})["sums"]) == 2)
    assert form.widget.view["cost"]["sums"] == [
        ["0.46 USD", "per hour on demand"], ["no list price", "per hour on spot machines"],
    ]  # fmt: skip


def plan_of(line: str, **options: str | bool) -> str:
    return str(api.prepare("print(1)", on="sagemaker", role="arn:aws:iam::123456789012:role/r",
                           bucket="b", workers=line, region="us-east-1", **options))  # type: ignore[arg-type]  # fmt: skip


def test_a_dry_run_says_what_the_job_costs(both: None) -> None:
    text = plan_of("2*ml.g5.2xlarge", dry_run=True, timeout="2h", max_cost="5usd")
    by_hand = "3.03 USD per hour; 6.06 USD for the time limit; stopped at 5.00 USD"
    left_out = "storage is not counted"
    assert text.splitlines()[-1] == f"Cost, by AWS's Price List: {by_hand}; {left_out}"
    last = plan_of("2*ml.p3.2xlarge", dry_run=True).splitlines()[-1]
    assert last.startswith(
        "Cost: price not known: AWS's Price List has no training on ml.p3.2xlarge"
    )


@pytest.mark.parametrize(
    ("machine", "most", "why"),
    [
        ("ml.p3.2xlarge", "50USD", "can't be kept: AWS's Price List has no training on ml.p3"),
        ("ml.m5.large", "50EUR", "can't be kept: its machines have prices in USD, not in EUR"),
        ("ml.m5.large", "50", "invalid --max-cost '50': expected an amount and its currency"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(
    both: None, machine: str, most: str, why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        plan_of(machine, max_cost=most)


def test_a_cell_does_not_wait_for_prices(both: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it knows goes into the run's folder, and its carrier asks."""
    monkeypatch.setattr(LOOKUP, "within", lambda *_: pytest.fail("a cell has waited"))
    prepared = api.prepare(
        "print(1)", on="sagemaker", role="arn:aws:iam::123456789012:role/r", bucket="b",
        workers="ml.m5.large", region="us-east-1",
    )  # fmt: skip
    assert prepared.cost == RunCost(str(prepared.job.layout), paid_phases=("downloading",))


def test_amounts_have_no_more_digits_than_an_estimate() -> None:
    amounts = (0, 0.00348, 0.0231, 0.424, 3.2049, 25.43, 101.54, 2436.9)
    assert [str(Money(amount, "EUR")) for amount in amounts] == [
        "0.00 EUR", "0.0035 EUR", "0.023 EUR", "0.42 EUR", "3.20 EUR", "25.4 EUR", "102 EUR",
        "2,437 EUR",
    ]  # fmt: skip
