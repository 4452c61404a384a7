"""One TCP socket of this machine, by the kernel's answer and by the system's lists."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb.worker.machine import sockets
from distrain_nb.worker.rank import rank

HOST = "127.0.0.1"


@pytest.fixture(params=["kernel", "lists"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways; the kernel must not be what is asked in the second."""
    monkeypatch.setattr(sockets, "_kernel_answers", lambda: request.param == "kernel")
    unused = "_rows" if request.param == "kernel" else "_ask"
    monkeypatch.setattr(sockets, unused, lambda *_: pytest.fail(f"{unused} was called"))
    yield


def test_the_kernel_answers_here() -> None:
    assert sockets._kernel_answers()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_whose_the_other_end_is(family: socket.AddressFamily) -> None:
    with socket.create_server((HOST, 0)) as server, socket.socket(family) as client:
        own_end = server.getsockname()
        client.connect((HOST if family == socket.AF_INET else f"::ffff:{HOST}", own_end[1]))
        peer = (HOST, client.getsockname()[1])
        assert sockets.owner(peer, own_end) == os.geteuid()
        assert sockets.owner((HOST, 1), own_end) is None
        assert sockets.owner(own_end, (HOST, 1)) is None
    with pytest.raises(ValueError, match="'::1' is no address of IPv4"):
        sockets.owner(("::1", 1), own_end)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("family", "host"),
    [(socket.AF_INET, HOST), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")],
)
def test_a_port_has_a_listener(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as server:
        server.bind((host, 0))
        port = server.getsockname()[1]
        assert not sockets.has_listener(port)
        server.listen()
        assert sockets.has_listener(port)
    assert not sockets.has_listener(port)


def test_a_system_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_kernel_answers", lambda: False)
    monkeypatch.setattr(sockets, "_LISTS", ((Path("/nowhere"), ""),))
    with pytest.raises(OSError, match="no list of sockets"):
        sockets.has_listener(80)


def test_a_kernel_without_the_module_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says of each socket that there is none."""
    monkeypatch.setattr(sockets, "_ask", lambda *_: None)
    sockets._kernel_answers.cache_clear()
    try:
        assert not sockets._kernel_answers()
    finally:
        sockets._kernel_answers.cache_clear()


def test_bridges_that_lead_to_no_other_machine(tmp_path: Path) -> None:
    for name, members in {"docker0": ["veth1"], "br0": ["eth0", "veth2"], "br-1": []}.items():
        (tmp_path / name / "bridge").mkdir(parents=True)
        for member in members:
            (tmp_path / name / "brif" / member).mkdir(parents=True)
            (tmp_path / member).mkdir()
    (tmp_path / "eth0" / "device").mkdir()
    assert sockets.container_bridges(tmp_path) == ["br-1", "docker0"]


def test_open_mpi_keeps_off_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "container_bridges", lambda: ["docker0"])
    monkeypatch.setattr(os, "environ", {})
    rank.leave_out_bridges()
    assert os.environ == {"OMPI_MCA_btl_tcp_if_exclude": "127.0.0.0/8,sppp,docker0"}
    monkeypatch.setattr(os, "environ", {"OMPI_MCA_btl_tcp_if_include": "eth1"})
    rank.leave_out_bridges()
    assert os.environ == {"OMPI_MCA_btl_tcp_if_include": "eth1"}
