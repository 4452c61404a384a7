"""A column of numbers that grows at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scalar = TypeVar("Scalar", np.int64, np.uint16, np.uint32)


class Column(Generic[Scalar]):
    """Values of one type, added at the end. A view stays as it was when more are added."""

    def __init__(self, dtype: type[Scalar]) -> None:
        self._room: NDArray[Scalar] = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[Scalar]:
        return self._room[: self._count]

    def extend(self, values: NDArray[Scalar]) -> None:
        needed = self._count + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, len(self._room) * 5 // 4), self._room.dtype)
            room[: self._count] = self.values
            self._room = room
        self._room[self._count : needed] = values
        self._count = needed
