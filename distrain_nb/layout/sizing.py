"""How large a Reduction Server pool must be, and what it saves on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.pool import Pool


def sized_reducers(layout: Layout) -> Pool:
    """The Reduction Server pool whose bandwidth just covers the primary and the workers."""
    raise NotImplementedError
