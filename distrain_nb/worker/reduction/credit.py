"""Flow control: how far the members of a group may send, so that it fits into a reducer's port."""

from __future__ import annotations

from distrain_nb.worker.reduction.protocol import PORT_BYTES, WINDOW, first_credit, largest_chunk


class Credit:
    """Counts of chunks, of each member from its first on: `granted`, `announced` by headers, and
    `received`.

    Half a port is shared out evenly for good, so that whoever begins may do so at once. The other
    half is for those who are sending: one who is first at an exchange may have all of it, and be a
    window ahead of the sums before the last comes.
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
        """Note that so many chunks more are to come."""
        self._sending += self.announced[member] == self.received[member]
        self.announced[member] += chunks

    def receive(self, member: int) -> None:
        """Count the next chunk of a member as received."""
        self._used -= self._extra(member)
        self.received[member] += 1
        self._used += self._extra(member)
        self._sending -= self.announced[member] == self.received[member]

    def grant(self, member: int, summed: int) -> int:
        """Return up to which chunk this member may send, now that so many have been summed."""
        more = self._more(member, summed)
        self._used -= self._extra(member)
        self.granted[member] += more
        self._used += self._extra(member)
        return self.granted[member]

    def is_due(self, member: int, summed: int) -> bool:
        """Return whether what may be granted is worth a message of its own, as it is no less than
        what is left: a sum may bring it soon."""
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
        """Return the chunks that a member may still send, beyond the first ones."""
        return max(0, self.granted[member] - self.received[member] - self._first)
