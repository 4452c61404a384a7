"""Flow control: how many chunks each member of a group may send to a reducer.

All chunks on their way have to fit into the reducer's port.
"""

from __future__ import annotations

from distrain_nb.worker.reduction.protocol import PORT_BYTES, WINDOW, first_credit, largest_chunk


class Credit:
    """The chunks of each member, counted from its first:

    `granted`, `announced` and `received`.

    Headers announce chunks. Half of the port is divided evenly for good, so that every member may
    begin at once. The other half is for members that are sending. The first member of an exchange
    may have all of it. So it can be a window ahead of the sums before the last member comes.
    """

    def __init__(self, members: int) -> None:
        self._first = first_credit(members)
        self._spare = max(0, PORT_BYTES // largest_chunk(members) - members * self._first)
        self._used = 0  # of what is to spare
        self._sending = 0  # members
        self.granted = [self._first] * members
        self.announced = [0] * members
        self.received = [0] * members

    def announce(self, member: int, chunks: int) -> None:
        """Note that a member will send so many more chunks."""
        self._sending += self.announced[member] == self.received[member]
        self.announced[member] += chunks

    def receive(self, member: int) -> None:
        """Count the next chunk of a member as received."""
        self._used -= self._extra(member)
        self.received[member] += 1
        self._used += self._extra(member)
        self._sending -= self.announced[member] == self.received[member]

    def grant(self, member: int, summed: int) -> int:
        """Return the number of the last chunk that a member may send, with so many summed."""
        more = self._more(member, summed)
        self._used -= self._extra(member)
        self.granted[member] += more
        self._used += self._extra(member)
        return self.granted[member]

    def is_due(self, member: int, summed: int) -> bool:
        """Return whether a grant is worth a message of its own.

        It is if it is no smaller than the member's unused grant. Else the next sum brings it soon.
        """
        unused = self.granted[member] - self.received[member]
        return self._more(member, summed) >= max(1, unused)

    def _more(self, member: int, summed: int) -> int:
        received, announced = self.received[member], self.announced[member]
        until = received + self._first
        if announced > until:
            free = self._spare - self._used + self._extra(member)
            until = min(announced, until + min(free, self._spare // self._sending))
        return max(0, min(until, summed + WINDOW) - self.granted[member])

    def _extra(self, member: int) -> int:
        """Return how many chunks of the common half a member still may send."""
        return max(0, self.granted[member] - self.received[member] - self._first)
