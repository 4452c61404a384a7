"""NaNs that stay one object: `x in values` compares objects first, and a NaN equals nothing."""

from __future__ import annotations

import pickle
import sys
from typing import Any

# As pickle writes a float: its opcode, the sign, the exponent.
_OPCODES = (pickle.BINFLOAT + b"\x7f\xf8", pickle.BINFLOAT + b"\xff\xf8")


def may_hold_nan(pickled: bytes) -> bool:
    """Return whether a part of a pickle has a NaN, or bytes that look like one."""
    return any(opcode in pickled for opcode in _OPCODES)


class NaNIdentity(pickle.Pickler):
    """Writes which NaN a float is. For that it asks Python code about every object, which takes
    twice the time."""

    def __init__(self, *files: Any, **options: Any) -> None:
        super().__init__(*files, **options)
        self._nans: dict[int, tuple[int, float]] = {}  # alive, so that identities stay unique

    def persistent_id(self, obj: Any) -> int | str | None:
        """Return the module whose `nan` this is, or a number for any other NaN."""
        if type(obj) is not float or obj == obj:
            return None
        for module in ("math", "numpy"):
            if obj is getattr(sys.modules.get(module), "nan", None):
                return module
        return self._nans.setdefault(id(obj), (len(self._nans), obj))[0]
