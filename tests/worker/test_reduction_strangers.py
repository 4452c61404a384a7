"""Whatever strangers send to a reducer, it goes on summing for the ranks that it has."""

from __future__ import annotations

import json
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import torch

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.protocol import Garbled, Greeting, Header
from distrain_nb.worker.reduction.reducer import MOST_SILENT
from tests.fuzzing import flipped
from tests.worker.reducing import LONG_S, members, reduce, reducing

NUMBERS = (
    "-9223372036854775808", "-1", "0", "1", "2", "4294967296", "9223372036854775808", "1e999",
    "-1e999", "NaN", "0.5", '"1"', "null", "true", "[]", "{}", "9" * 5000,
)  # fmt: skip
FIELDS = ('"group"', "[1,2]", "0", "false")
FLIPPED = 300
GOOD = Greeting("a stranger's", (0, 1), 0).encode()


def greeting(text: bytes) -> bytes:
    return b"dRS3" + struct.pack("<I", len(text)) + text


def texts() -> Iterator[bytes]:
    """Greetings of which one field, or a rank, is another value; and what is none."""
    for value in NUMBERS:
        for at in range(len(FIELDS)):
            yield f"[{','.join([*FIELDS[:at], value, *FIELDS[at + 1 :]])}]".encode()
        yield f'["group",[1,{value}],0,false]'.encode()
        yield value.encode()
    for count in (0, 1, 3, 5):
        yield json.dumps([0] * count).encode()
    yield b'["group",[1e999,2],0,false]'
    yield b"[" * 100_000
    yield b'["group",' + b"[" * 100_000
    yield b'{"a":' * 100_000
    yield b"\xff\xfe\0"
    yield b""
    for count in (1 << 14) + 1, 140_000:
        yield json.dumps(["group", [*range(count)], 0, False], separators=(",", ":")).encode()
    yield ('["group",[' + "7," * 300_000 + "8],0,false]").encode()


def headers() -> Iterator[bytes]:
    """What may follow a greeting."""
    for size in (0, 1, 4, 2**31, 2**62, 2**63, 2**64 - 1):
        for code in (0, 3, 4, 255):
            for mean in (0, 1, 255):
                yield struct.pack("<IBBxxQ", 2**32 - 1, code, mean, size) + b"x" * 64


def sent() -> Iterator[bytes]:
    yield from map(greeting, texts())
    asking = Greeting("group", (0, 1), 0, asks=True).encode()
    yield asking + GOOD
    yield asking + b"x" * 100
    for number, header in enumerate(headers()):
        yield Greeting(f"stranger {number}", (0, 1), 0).encode() + header
    chance = random.Random(7)
    both = GOOD + Header(0, "float32", False, 64).encode() + b"x" * 64
    for _ in range(FLIPPED):
        yield flipped(chance, both)
        yield both[: chance.randrange(len(both))]


@pytest.mark.parametrize("text", [*texts()], ids=lambda text: repr(text[:40]))
def test_a_greeting_is_read_or_refused(text: bytes) -> None:
    try:
        read = Greeting.decode(text)
    except Garbled:
        return
    assert 0 <= read.member < len(read.ranks) <= protocol.MOST_MEMBERS
    assert all(type(rank) is int and rank >= 0 for rank in read.ranks)


def test_strangers_disturb_no_sum() -> None:
    said: list[str] = []
    with reducing(1, said.append) as addresses, members(addresses, 2) as ranks:
        for number, data in enumerate(sent()):
            with socket.create_connection(protocol.split_address(addresses[0])) as stranger:
                try:
                    stranger.sendall(data)
                    if number % 3:
                        stranger.shutdown(socket.SHUT_WR)
                except OSError:  # it was turned away before its end
                    pass
            if number % 50 == 0:
                for each in [reduce(rank, torch.ones(8)) for rank in ranks]:
                    each.result(LONG_S)
        for each in [reduce(rank, torch.ones(8)) for rank in ranks]:
            each.result(LONG_S)
    assert said == []


def test_strangers_that_say_nothing_keep_no_worker_out() -> None:
    with reducing(1, print) as addresses, ExitStack() as held:
        at = protocol.split_address(addresses[0])
        silent = [held.enter_context(socket.create_connection(at)) for _ in range(2 * MOST_SILENT)]
        for stranger in silent[:MOST_SILENT]:
            stranger.settimeout(LONG_S)
            assert stranger.recv(1) == b""
        with members(addresses, 2) as ranks:
            for each in [reduce(rank, torch.ones(8)) for rank in ranks]:
                each.result(LONG_S)
