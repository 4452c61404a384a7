"""The members of a process group at a reducer, and their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from distrain_nb.worker.reduction import protocol
from distrain_nb.worker.reduction.credit import Credit
from distrain_nb.worker.reduction.protocol import WINDOW
from distrain_nb.worker.reduction.sums import Sums

if TYPE_CHECKING:
    from distrain_nb.worker.reduction.connection import Chunk, Connection


class Group:
    """A process group: a connection for each rank, in order, or None before the rank connects."""

    def __init__(self, ranks: Any) -> None:
        self.ranks: List[int] = list(ranks)
        self.members: List[Optional[Connection]] = [None] * len(self.ranks)
        self.sums = Sums(len(self.ranks))
        self.credit = Credit(len(self.ranks))
        self.lost = False  # whether some have left
        self._ready = 0  # members that have a chunk here
        self._failed = ""

    def join(self, index: int, connection: Connection) -> None:
        if self.members[index] is not None:
            connection.refuse(f"rank {self.ranks[index]} has connected twice")
            return
        self.members[index] = connection
        if self._failed:
            connection.refuse(self._failed)

    @property
    def deserted(self) -> bool:
        """Whether all members that had connected are gone."""
        return all(member is None or member.gone for member in self.members)

    @property
    def absent(self) -> List[int]:
        """The ranks that have not connected yet."""
        return [rank for rank, member in zip(self.ranks, self.members) if member is None]

    def take(self, index: int, chunk: Chunk) -> None:
        """Take the next chunk of a member. Sum every chunk that is complete."""
        member = self.members[index]
        assert member is not None
        self._ready += not member.chunks
        member.chunks.append(chunk)
        self.credit.receive(index)
        self.go_on()

    def grant(self) -> None:
        """Send credit to members that have got none with a sum."""
        for index, member in enumerate(self.members):
            if member is not None and self.credit.is_due(index, self.sums.number):
                until = self.credit.grant(index, self.sums.number)
                member.send(protocol.CREDIT, credit=until)

    def go_on(self) -> None:
        """Sum chunks that every member has sent, until the slowest has a full window to read."""
        while not self._failed and self._ready == len(self.ranks):
            members = [member for member in self.members if member is not None]
            if self._is_full(members):
                for member in members:
                    member.flush()
                if self._is_full(members):
                    return
            self._sum(members)
        if self.lost and not self._failed:
            self._look_for_the_lost()

    def _is_full(self, members: List[Connection]) -> bool:
        """Return whether the next sum needs memory that the slowest member has not read yet."""
        slowest = min((m.sent for m in members if not m.gone), default=self.sums.number)
        return self.sums.number - slowest >= WINDOW

    def _sum(self, members: List[Connection]) -> None:
        chunks = [member.chunks.popleft() for member in members]
        self._ready = sum(bool(member.chunks) for member in members)
        chunk = chunks[0]
        for rank, chunk_of_rank in zip(self.ranks, chunks):
            if chunk_of_rank != chunk:
                self._fail(
                    f"the ranks differ: rank {self.ranks[0]} wants {chunk.header}, and "
                    f"rank {rank} {chunk_of_rank.header}"
                )
                return
        result = self.sums.next(chunk.header.dtype, chunk.header.mean, chunk.size)
        for index, member in enumerate(members):
            member.send(protocol.SUM, result, self.credit.grant(index, self.sums.number))

    def _look_for_the_lost(self) -> None:
        """Fail if members wait for a member that is gone."""
        waiting = [member for member in self.members if member is not None and member.chunks]
        for rank, member in zip(self.ranks, self.members):
            if waiting and member is not None and member.gone and not member.chunks:
                self._fail(f"rank {rank} has left before {waiting[0].chunks[0].header}")
                return

    def _fail(self, why: str) -> None:
        self._failed = why
        for member in self.members:
            if member is not None:
                member.refuse(why)

    def missing(self) -> List[int]:
        """Return the ranks that other members wait for."""
        arrived = {
            rank for rank, member in zip(self.ranks, self.members) if member and member.chunks
        }
        return [rank for rank in self.ranks if rank not in arrived] if arrived else []
