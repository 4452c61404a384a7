"""What jobs ask of a Ray cluster, without one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import distrain_nb as d
from distrain_nb.backends.remote.service import Unanswered
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.places.ray.dashboard import Dashboard, Headers
from distrain_nb.places.ray.demand import Bundle, Node, refusal, waiting
from distrain_nb.places.ray.service import pieces, unwrapped

GIB = 1 << 30
NOWHERE = {"on": "ray", "address": "http://127.0.0.1:9"}


def node(name: str, free: dict[str, float] | None = None, **total: float) -> Node:
    return Node(name, {"CPU": 16.0, "memory": 64.0 * GIB, **total}, free, {})


GPUS = [
    node("a", GPU=4.0, **{"accelerator_type:T4": 1.0}),
    node("b", GPU=4.0, **{"accelerator_type:T4": 1.0}),
]


@pytest.mark.parametrize(
    ("needs", "count", "strategy", "why"),
    [
        ({"GPU": 4}, 2, "STRICT_SPREAD", ""),
        ({"GPU": 8}, 1, "STRICT_SPREAD", "no node has 8 GPUs: of 2 nodes the largest has 4"),
        (
            {"GPU": 4}, 3, "STRICT_SPREAD",
            "3 replicas need a node each (STRICT_SPREAD): the cluster has 2 with 4 GPUs",
        ),
        ({"GPU": 4}, 3, "SPREAD", "the cluster has no room for 12 GPUs (it has 8) (SPREAD)"),
        ({"GPU": 2}, 4, "PACK", ""),
        ({"GPU": 2}, 3, "STRICT_PACK",
         "the cluster has no room for 6 GPUs (it has 8) (STRICT_PACK)"),
        (
            {"accelerator_type:H100": 0.001}, 1, "PACK",
            "no node has an accelerator H100: the cluster has T4",
        ),
        ({"memory": 96.0 * GIB}, 1, "PACK",
         "no node has 96 GiB of memory: of 2 nodes the largest has 64 GiB"),
        ({"GPU": 4, "CPU": 17}, 1, "PACK", "no node has 17 CPUs: of 2 nodes the largest has 16"),
    ],
)  # fmt: skip
def test_what_a_cluster_can_never_give(
    needs: dict[str, float], count: int, strategy: str, why: str
) -> None:
    assert refusal([Bundle(needs)] * count, strategy, GPUS) == why


@pytest.mark.parametrize("strategy", ["STRICT_SPREAD", "SPREAD"])
def test_a_place_is_found_without_asking_each_node_for_each_bundle(strategy: str) -> None:
    nodes = [Node(str(number), {"CPU": 4.0}, None, {}) for number in range(4096)]
    bundles = [Bundle({"CPU": 4.0})] * len(nodes)
    begun = time.process_time()
    assert refusal(bundles, strategy, nodes) == ""
    assert refusal(bundles, strategy, nodes[1:])
    assert time.process_time() - begun < 2  # 16 s where each bundle began at the first node


def test_what_a_job_waits_for() -> None:
    nodes = [node("a", {"CPU": 16.0, "GPU": 1.0}, GPU=4.0), node("b", {"GPU": 4.0}, GPU=4.0)]
    bundles = [Bundle({"GPU": 4.0})] * 2
    assert waiting(bundles, "STRICT_SPREAD", nodes) == "needs 8 GPUs: 5 of 8 free"
    assert waiting(bundles[:1], "STRICT_SPREAD", nodes) == ""


class Nodes(BaseHTTPRequestHandler):
    """A dashboard that knows eight nodes, and nothing else."""

    def do_GET(self) -> None:
        rows = [
            {"node_name": f"n{n}", "resources_total": {"CPU": 4.0}, "labels": {}, "state": "ALIVE"}
            for n in range(8)
        ]
        data = json.dumps({"data": {"result": {"result": rows}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def eight_nodes() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Nodes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("placement", "cpus", "repairs"),
    [
        ("STRICT_SPREAD", "4", ["Take 8 replicas"]),
        ("STRICT_SPREAD", "1", ["Take 8 replicas"]),
        ("SPREAD", "1", ["Take 32 replicas"]),
        ("SPREAD", "8", []),
    ],
)
def test_a_thousand_replicas_for_eight_nodes_are_cut_to_what_there_is(
    home: Path, eight_nodes: str, placement: str, cpus: str, repairs: list[str]
) -> None:
    (finding,) = d.check(
        "1", on="ray", address=eight_nodes, workers=1024, cpus=cpus, placement=placement
    )
    assert (finding.code, finding.where) == ("ray.no-room", "workers")
    assert [fix.label for fix in finding.fixes] == repairs


def test_a_plan_says_what_each_replica_needs(home: Path) -> None:
    plan = d.plan(
        "import torch, torch.distributed", **NOWHERE, workers="2*big+8*A100", memory="64GiB",
        resource="license=1", placement="SPREAD",
    )  # fmt: skip
    request = yaml.safe_load(str(plan))
    assert request["placement_group"] == {
        "bundles": 2 * [{
            "CPU": 8.0, "GPU": 8.0, "accelerator_type:A100": 0.001, "memory": 64.0 * GIB,
            "license": 1.0, "group": "big",
        }],
        "strategy": "SPREAD",
    }  # fmt: skip
    assert request["environment"]["DISTRAIN_RANKS"] == "8"
    servers = d.plan("import tensorflow", **NOWHERE, workers="2*node+1*T4", servers="1")
    needs = yaml.safe_load(str(servers))["placement_group"]["bundles"]
    assert [bundle.get("GPU") for bundle in needs] == [1.0, 1.0, None]


def test_a_plan_says_what_processes_have_and_how_long_they_may_save(home: Path) -> None:
    short = d.plan("print(1)", **NOWHERE)
    request = yaml.safe_load(str(short))
    assert request["placement_group"]["bundles"] == [{"CPU": 1.0}]
    assert "pip" not in request["runtime_env"]
    assert request["folder"].startswith("none: ")
    assert request["address"] == NOWHERE["address"]
    wait = int(request["runtime_env"]["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"])
    slow = d.plan(
        "print(1)", **NOWHERE, require="tabulate==0.9.0", signal_before="300s", folder="/shared",
        workers="1*big+2*TPU_V5E", timeout="1h", env="MINE=secret",
    )  # fmt: skip
    request = yaml.safe_load(str(slow))
    assert request["runtime_env"]["pip"] == ["tabulate==0.9.0"]
    later = int(request["runtime_env"]["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"])
    assert wait < 300 < later < 400
    (bundle,) = request["placement_group"]["bundles"]
    assert (bundle["TPU"], bundle["accelerator_type:TPU-V5LITEPOD"]) == (2.0, 0.001)
    assert "MINE" in request["env"] and "secret" not in str(slow)
    assert Path(request["folder"]).parent == Path("/shared")


def test_what_needs_a_node_or_a_folder_is_said_with_its_repair(home: Path) -> None:
    def findings(**options: Any) -> dict[str, list[str]]:
        found = d.check("print(1)", **NOWHERE, **options)
        return {f.code: [fix.label for fix in f.fixes] for f in found}

    write = ["Write `--placement STRICT_SPREAD`"]
    assert findings(launcher="mpi", workers=2, placement="PACK")["ray.mpi-nodes"] == write
    assert "ray.mpi-nodes" not in findings(launcher="mpi", workers=2, placement="STRICT_SPREAD")
    assert "ray.mpi-nodes" not in findings(launcher="mpi", workers=1, placement="PACK")
    assert "ray.retries" in findings(retries=2)
    assert "ray.retries" not in findings()
    assert "ray.retries" not in findings(retries=2, folder="/shared")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpus": "none"}, "invalid --cpus 'none': expected a number above 0"),
        ({"resource": "license"}, "invalid --resource 'license': expected NAME=N"),
        ({"placement": "ANY"}, "invalid --placement 'ANY': expected STRICT_SPREAD, SPREAD"),
        ({"credentials": "nowhere.json"}, "--credentials nowhere.json: No such file"),
    ],
)
def test_what_can_not_be_read_is_refused(home: Path, options: dict[str, str], message: str) -> None:
    try:
        said = "".join(f.message for f in d.check("1", **NOWHERE, **options))
    except OptionError as error:
        said = str(error)
    assert message in said


def test_logins_come_from_files_and_from_the_variables_of_ray(tmp_path: Path) -> None:
    file, token = tmp_path / "headers.json", tmp_path / "token"
    file.write_text(json.dumps({"headers": {"X-Team": "a"}, "cookies": {"c": "1"}}))
    token.write_text("abc\n")
    environ = {
        "RAY_JOB_HEADERS": '{"X-Own": "b"}', "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }  # fmt: skip
    found = Headers.find(str(file), environ)
    assert found.headers == {"Authorization": "Bearer abc", "X-Own": "b", "X-Team": "a"}
    assert (found.cookies, found.verify) == ({"c": "1"}, True)
    assert "abc" not in repr(Dashboard("http://a", found))
    del environ["RAY_AUTH_MODE"]
    assert Headers.find("", environ).headers["Authorization"] == "Bearer abc"
    assert "Authorization" not in Headers.find("", {**environ, "RAY_AUTH_MODE": "disabled"}).headers
    assert Headers.find("", {"RAY_AUTH_TOKEN": "x"}).headers == {"Authorization": "Bearer x"}
    own = {**environ, "RAY_JOB_HEADERS": '{"authorization": "Basic y"}'}
    assert Headers.find("", own).headers == {"authorization": "Basic y"}
    file.write_text('{"token": 1}')
    with pytest.raises(OptionError, match="unknown 'token', expected headers, cookies, verify"):
        Headers.find(str(file), {})
    with pytest.raises(OptionError, match="RAY_JOB_HEADERS: expected a JSON object"):
        Headers.find("", {"RAY_JOB_HEADERS": "x"})
    with pytest.raises(DistrainError, match="nowhere://cluster: "):
        Dashboard.at("nowhere://cluster", Headers())


def test_a_parcel_that_has_not_come_whole_is_asked_for_again() -> None:
    content = b'{"path": "a", "at": 0, "size": 2}\n{}{"path": "b", "at": -1, "size": 0}\n'
    parcel = b"%d\n" % len(content) + content
    assert list(pieces(unwrapped(parcel))) == [("a", 0, b"{}"), ("b", -1, b"")]
    for part in (parcel[:-1], b"", b"x"):
        with pytest.raises(Unanswered):
            unwrapped(part)


def test_what_a_thousand_replicas_have_written_is_one_parcel(tmp_path: Path) -> None:
    """Else more would come in a second than anybody can fetch."""
    pytest.importorskip("ray")
    from distrain_nb.places.ray.driver import Parcels

    parcels = Parcels("job", str(tmp_path))
    for number in range(1000):
        parcels.add([(f"replicas/{number}/log.tsv", 0, b"line\n")])
    parcels.flush()
    parcels.add([("large", 0, bytes(9 << 20))])
    parcels.flush()
    first, second = sorted(tmp_path.iterdir())
    assert len(list(pieces(unwrapped(first.read_bytes())))) == 1000
    assert [path for path, _, _ in pieces(unwrapped(second.read_bytes()))] == ["large"]


def test_an_address_with_a_login_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OptionError, match=r"https://\*\*\*@head:8265 has a login") as refused:
        d.plan("print(1)", on="ray", address="https://ada:pass1word@head:8265")
    assert "pass1word" not in str(refused.value)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "http://ada@127.0.0.1:9")
    with pytest.raises(OptionError, match=r"\*\*\*@127\.0\.0\.1:9 has a login"):
        d.plan("print(1)", on="ray")
