"""Nodes with a link each to one switch, with a rate and a delay: network namespaces here.

A node is a namespace whose `eth0` ends at a port of a bridge in another namespace. tc's token
bucket filter gives both ends of the link their rate, so a node sends and receives so many bit/s at
once. Kernels built without netem delay nothing, so with a delay the link is two TAP devices and a
process that hands packets on, those of the node after the delay. Needs root, iproute2 and, for a
delay, /dev/net/tun.
"""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import os
import secrets
import select
import signal
import struct
import subprocess
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("fork")

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_CHECKSUM, _TSO4 = 1, 2
_PACKET = 1 << 17

# Packets of several segments leave the cores to the ranks; a burst holds one, and a queue what a
# port of a switch does.
_GSO_BYTES, _BURST, _QUEUE_BYTES = 16_000, 20_000, 1_000_000

# What Linux takes unless it is told otherwise, as some machines are.
_CONGESTION = "cubic"


@dataclass(frozen=True)
class Shape:
    """A link: Mbit/s in each direction (0: as fast as this machine can), ms from node to node."""

    mbit: int
    delay_ms: float

    def __str__(self) -> str:
        rate = f"{self.mbit} Mbit/s" if self.mbit else "not shaped"
        return f"{rate}, {self.delay_ms:g} ms"


@dataclass(frozen=True)
class Node:
    """A place on the network, and the interface by which it is reached."""

    namespace: str
    address: str
    device: str = "eth0"

    def command(self, *words: str) -> list[str]:
        """What runs a program there."""
        return ["ip", "netns", "exec", self.namespace, *words]


@contextmanager
def switched(count: int, shape: Shape) -> Iterator[list[Node]]:
    """So many nodes around one switch."""
    name = f"dnb-{secrets.token_hex(3)}"
    switch = f"{name}-switch"
    nodes = [Node(f"{name}-{n}", f"10.78.0.{n + 1}") for n in range(count)]
    with ExitStack() as undo:
        for namespace in (switch, *(node.namespace for node in nodes)):
            _ip("netns", "add", namespace)
            undo.callback(subprocess.run, ["ip", "netns", "del", namespace], check=False)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        if shape.delay_ms:
            undo.enter_context(_relayed(nodes, switch, shape.delay_ms / 1000))
        for number, node in enumerate(nodes):
            if not shape.delay_ms:
                cable = ("link", "add", "eth0", "netns", node.namespace, "type", "veth", "peer")
                _ip(*cable, "name", f"port{number}", "netns", switch)
            _plug(node, switch, f"port{number}", shape.mbit)
        yield nodes


@contextmanager
def loopback(count: int) -> Iterator[list[Node]]:
    """So many nodes that are one: what they send goes by the loopback interface."""
    name = f"dnb-{secrets.token_hex(3)}"
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield [Node(name, "127.0.0.1", "lo")] * count
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


def inside(node: Node, function: Callable[..., Any], *given: Any) -> Running:
    """Run a function in a process of its own on a node; fork keeps what is imported."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_run, args=(node, theirs, function, given), daemon=True)
    process.start()
    theirs.close()
    return Running(process, ours)


@dataclass(frozen=True)
class Running:
    """A function that runs on a node."""

    process: Any
    answers: Connection

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.join()


def results(running: Sequence[Running], limit_s: float = 600.0) -> list[Any]:
    """What each returned. Raises RuntimeError with the first one's traceback that failed."""
    left = {each.answers: number for number, each in enumerate(running)}
    found: dict[int, Any] = {}
    end = time.monotonic() + limit_s
    try:
        while left:
            ready = wait(list(left), max(0.0, end - time.monotonic()))
            if not ready:
                raise RuntimeError(f"{len(left)} of {len(running)} nodes took over {limit_s} s")
            for answers in ready:
                assert isinstance(answers, Connection)
                failed, found[left.pop(answers)] = answers.recv()
                if failed:
                    raise RuntimeError(failed)
    finally:
        for each in running:
            each.stop()
    return [found[number] for number in range(len(running))]


def sent_bytes() -> int:
    """Bytes that have left this process's namespace, by all its interfaces together."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[8]) for line in lines)


def _run(node: Node, answers: Connection, function: Callable[..., Any], given: Any) -> None:
    _enter(node.namespace)
    try:
        answers.send(("", function(*given)))
    except BaseException:
        answers.send((traceback.format_exc(), None))


def _enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", namespace).open() as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def _plug(node: Node, switch: str, port: str, mbit: int) -> None:
    _ip("-n", switch, "link", "set", port, "master", "br0")
    _ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", "eth0")
    _ip("-n", node.namespace, "link", "set", "lo", "up")
    for namespace, device in ((node.namespace, "eth0"), (switch, port)):
        size = str(_GSO_BYTES)
        if mbit:
            _ip("-n", namespace, "link", "set", device, "gso_max_size", size)
            shape = ("rate", f"{mbit}mbit", "burst", str(_BURST), "limit", str(_QUEUE_BYTES))
            command = ["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf"]
            subprocess.run([*command, *shape], check=True)
        _ip("-n", namespace, "link", "set", device, "up")
    route = ("route", "replace", "10.78.0.0/24", "dev", "eth0", "src", node.address)
    _ip("-n", node.namespace, *route, "congctl", _CONGESTION)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def _relayed(nodes: Sequence[Node], switch: str, delay_s: float) -> Iterator[None]:
    """TAP devices in the place of cables, and the process between them."""
    ready, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_relay, args=(nodes, switch, delay_s, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        ready.recv()
        yield
    finally:
        process.kill()
        process.join()


def _relay(nodes: Sequence[Node], switch: str, delay_s: float, ready: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(PermissionError):  # late by itself, it would delay packets more than it should
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    away, back = {}, {}
    for number, node in enumerate(nodes):
        near = _tap(node.namespace, "eth0")
        far = _tap(switch, f"port{number}")
        away[near], back[far] = far, near
    ready.send(True)
    waiting: deque[tuple[float, int, bytes]] = deque()
    while True:
        due = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([*away, *back], [], [], due)
        for device in readable:
            for packet in _packets(device):
                if device in back:
                    _write(back[device], packet)
                else:
                    waiting.append((time.monotonic() + delay_s, away[device], packet))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, device, packet = waiting.popleft()
            _write(device, packet)


def _packets(device: int) -> Iterator[bytes]:
    for _ in range(8):
        try:
            yield os.read(device, _PACKET)
        except BlockingIOError:
            return


def _write(device: int, packet: bytes) -> None:
    with suppress(OSError):  # a device that is down or full drops packets, as a link does
        os.write(device, packet)


def _tap(namespace: str, name: str) -> int:
    """A TAP device that takes packets of several segments."""
    _enter(namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(device, _TUNSETOFFLOAD, _CHECKSUM | _TSO4)
    return device
