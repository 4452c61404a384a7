"""Arrays that grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


class Column:
    """Values of one type, added at the end. A view stays as it was when more are added."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self._count]

    def extend(self, values: NDArray[Any]) -> None:
        needed = self._count + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, len(self._room) * 5 // 4), self._room.dtype)
            room[: self._count] = self.values
            self._room = room
        self._room[self._count : needed] = values
        self._count = needed
