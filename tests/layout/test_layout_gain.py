"""The model of traffic and latency for a ring, a tree and reducers, and when these pay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distrain_nb.layout import Layout
from distrain_nb.layout.advice import advise
from distrain_nb.layout.case import Case, case_of
from distrain_nb.layout.gain import article_comparison, exchange, gain, remarks
from distrain_nb.layout.traffic import Links, links_of, ways

TEN = Links(8, 10, 8, 10)


def test_the_three_ways_of_eight_workers() -> None:
    ring, tree, reducers = ways(1e9, TEN)
    sent = [way.bytes_per_worker for way in (ring, tree, reducers)]
    assert sent == [1.75e9, 2e9, 1e9]
    assert [way.hops for way in (ring, tree, reducers)] == [14, 6, 2]
    assert ring.seconds == pytest.approx(1.4 + 14 * 50e-6)
    assert reducers.seconds == pytest.approx(0.8 + 2 * 50e-6)


def test_reducers_that_take_in_less_than_workers_send_take_longer() -> None:
    half = ways(1e9, Links(8, 10, 4, 10))[2]
    assert half.seconds == pytest.approx(1.6, rel=0.001)
    assert half.bytes_per_worker == 1e9
    faster = ways(1e9, Links(8, 10, 4, 20))[2]
    assert faster.seconds == pytest.approx(0.8, rel=0.001)


def test_a_long_exchange_is_worth_reducers() -> None:
    found = gain(1e9, TEN, 0.1)
    assert found.pays
    assert found.throughput == pytest.approx((0.1 + 1.4 - 0.05) / (0.1 + 0.8 - 0.05), rel=0.001)
    assert str(found) == (
        "8 reducers shorten a step from 1.45 s to 850 ms, 1.71 times the throughput: a worker "
        "sends 1 GB where a ring has it send 1.75 GB"
    )


@pytest.mark.parametrize(
    ("size", "links", "step", "why"),
    [
        (1e9, Links(8, 100, 8, 100), 1, "the backward pass hides 500 ms, and a ring takes 1"),
        (1e6, TEN, 0.25, "the backward pass hides 125 ms, and a tree takes 1.9 ms for 1 MB"),
        (1e9, Links(2, 10, 2, 10), 0.1, "of 2 machines, each sends a gradient once in a ring"),
        (1e9, Links(8, 10, 4, 10), 0.1, "4 reducers of 10 Gbit/s take 1.6 s to get what 8"),
        (1e9, TEN, 2.5, "a step would take 2.5 s in place of 2.65 s, for 8 reducers more"),
    ],
)  # fmt: skip
def test_where_they_don_t_pay_is_said(size: float, links: Links, step: float, why: str) -> None:
    found = gain(size, links, step)
    assert not found.pays
    assert str(found).startswith(f"reducers don't pay: {why}")


@given(
    st.floats(1, 1e12), st.integers(2, 5000), st.floats(0.1, 3200), st.integers(1, 5000),
    st.floats(0.1, 3200), st.floats(1e-4, 1e3),
)  # fmt: skip
def test_the_model_never_promises_more_than_twice(
    size: float, workers: int, gbps: float, reducers: int, each: float, step: float
) -> None:
    without_latency = Links(workers, gbps, reducers, each, hop_s=0.0)
    found = gain(size, without_latency, step)
    assert 0 < found.throughput <= 2
    assert str(found)


def test_the_article_s_reducers_stand_beside_ours() -> None:
    eight = Layout.of("vertex", primary="a2-highgpu-8g+8*A100", workers="7*a2-highgpu-8g+8*A100")
    links = links_of(eight)
    assert (links.workers, links.gbps) == (8, 100)
    assert (links.reducers, links.reducer_gbps) == (25, 32)
    assert article_comparison(eight) == (
        "the article measured +75 % with 20 reducers of a type that it doesn't name; "
        "25*n1-highcpu-16 is what the documents ask for: reducers that take in all 800 Gbit/s of "
        "the workers. 20 reducers do with 40 Gbit/s each, n1-highcpu-16 has 32"
    )
    assert not article_comparison(eight.edited({"workers.replicas": 6}))
    assert not article_comparison(Layout.of(workers=7))


def test_advice_says_what_reducers_bring_and_why_there_are_none() -> None:
    eight = {"primary": "a2-highgpu-8g+8*A100", "workers": "7*a2-highgpu-8g+8*A100"}
    cases = {
        "NCCL on Vertex AI": case_of(Layout.of("vertex", **eight), 1.34e9, 0.1),
        "gloo, on machines": Case(1.34e9, 0, 8, 10, "pytorch"),
        "don't pay: the backward pass hides": Case(1e6, 0, 8, 10, "pytorch"),
    }
    for words, case in cases.items():
        (said,) = [reason for reason in advise(case).reasons if "reducers " in reason][:1]
        assert words in said
    for case in (Case(None, 0, 8, 10), Case(1e9, 4, 1, 10)):
        assert not list(remarks(case))
        assert exchange(case) is None


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (case_of(Layout.of("sagemaker", workers="8*ml.p4d.24xlarge"), 1.34e9, 0.1),
         "SageMaker has no reducers"),
        (case_of(Layout.of("vertex", primary="n1-standard-16", workers="7*n1-standard-16"), 1.34e9),
         "Vertex AI's reducers are for GPUs alone"),
        (Case(1e9, 0, 8, 10, "pytorch", layout=Layout.of(workers=7)),
         "reducers on this machine are for trying out: nothing waits for a link"),
        (Case(1e9, 0, 8, 10, "tensorflow"), "reducers on CPUs are for gloo, which PyTorch has"),
    ],
)  # fmt: skip
def test_where_there_are_no_reducers_the_exchange_has_a_ring_and_a_tree(
    case: Case, why: str
) -> None:
    assert list(remarks(case)) == [why]
    found = exchange(case)
    assert found
    assert [way.name for way in found.ways] == ["ring", "tree"]
