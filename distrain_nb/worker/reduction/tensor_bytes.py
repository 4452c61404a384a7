"""The memory of a tensor as bytes that a socket can send from and receive into."""

from __future__ import annotations

import ctypes
from typing import Any


def bytes_of(tensor: Any) -> memoryview:
    """Return the memory of a contiguous tensor on the CPU, of any dtype; the tensor has to outlive
    it."""
    size = tensor.numel() * tensor.element_size()
    if not size:
        return memoryview(b"")
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")
