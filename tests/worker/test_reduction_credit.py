"""How far members may send: never more than a port holds, never too little to go on."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from distrain_nb.worker.reduction.credit import Credit
from distrain_nb.worker.reduction.protocol import (
    LARGE_CHUNK_BYTES,
    PORT_BYTES,
    WINDOW,
    first_credit,
    largest_chunk,
)

MOST = PORT_BYTES // LARGE_CHUNK_BYTES  # members that have a chunk each in a port


class Exchange:
    """Members that send parts of so many chunks, whose sums are made when all have sent one."""

    def __init__(self, members: int, parts: list[int]) -> None:
        self.credit, self.parts = Credit(members), parts
        self.summed = 0

    def may_send(self, member: int) -> bool:
        return self.credit.received[member] < min(self.credit.granted[member], sum(self.parts))

    def send(self, member: int) -> None:
        """A chunk arrives, and what it brings the members is told them."""
        credit = self.credit
        if credit.received[member] == credit.announced[member]:
            begun = [sum(self.parts[:n]) for n in range(len(self.parts))]
            credit.announce(member, self.parts[begun.index(credit.received[member])])
        credit.receive(member)
        while min(credit.received) > self.summed:
            self.summed += 1
            for each in range(len(credit.granted)):
                credit.grant(each, self.summed)
        if credit.is_due(member, self.summed):
            credit.grant(member, self.summed)


@settings(deadline=None)
@given(
    members=st.integers(2, MOST),
    parts=st.lists(st.integers(1, 3 * WINDOW), min_size=1, max_size=3),
    data=st.data(),
)
def test_what_is_under_way_fits_into_a_port_and_goes_on(
    members: int, parts: list[int], data: st.DataObject
) -> None:
    exchange = Exchange(members, parts)
    credit, chunk = exchange.credit, largest_chunk(members)
    order = data.draw(st.permutations(range(members)))
    turns = data.draw(st.integers(1, 2 * WINDOW))
    while exchange.summed < sum(parts):
        ready = [member for member in order if exchange.may_send(member)]
        assert ready
        for _ in range(turns):
            if not exchange.may_send(ready[0]):
                break
            exchange.send(ready[0])
            under_way = [g - r for g, r in zip(credit.granted, credit.received, strict=True)]
            assert sum(under_way) * chunk <= PORT_BYTES
            assert max(credit.granted) <= exchange.summed + WINDOW
        order = [*order[1:], order[0]]


def test_the_first_at_an_exchange_is_a_window_ahead_and_all_together_get_even_shares() -> None:
    exchange = Exchange(8, [2 * WINDOW])
    while exchange.may_send(0):
        exchange.send(0)
    assert exchange.credit.received[0] == WINDOW
    for member in range(1, 8):
        exchange.send(member)
    assert exchange.summed == 1 and exchange.may_send(0)

    together = Exchange(8, [2 * WINDOW])
    for _ in range(WINDOW):
        for member in range(8):
            together.send(member)
    credit = together.credit
    shares = {g - r for g, r in zip(credit.granted, credit.received, strict=True)}
    assert shares == {PORT_BYTES // largest_chunk(8) // 8}


def test_each_of_any_number_may_begin() -> None:
    assert [first_credit(members) for members in (2, 8, 16, 64, 1000)] == [2, 1, 1, 1, 1]
