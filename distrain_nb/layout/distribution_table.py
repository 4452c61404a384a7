"""The article's table of distributions, with the cell of a case marked."""

from __future__ import annotations

from distrain_nb.layout.case import Case
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.distribution_choice import LONG, SHORT
from distrain_nb.layout.distributions import (
    DDP,
    DDP_ONE_INSTANCE,
    HOROVOD,
    PARAMETER_SERVERS,
    has_pytorch,
)

_ROWS = (
    (LONG, PARAMETER_SERVERS, f"{PARAMETER_SERVERS}, or {HOROVOD} on one multi-GPU instance"),
    (SHORT, PARAMETER_SERVERS, HOROVOD),
)
_ROWS_OF_PYTORCH = ((LONG, DDP, DDP_ONE_INSTANCE), (SHORT, DDP, DDP))


def marked_table(case: Case) -> Grid:
    """Return the article's table with the cell of a case in brackets. PyTorch's has DDP."""
    column = None if case.gpus_per_instance is None else 2 if case.gpus_per_instance else 1
    duration = {True: LONG, False: SHORT, None: ""}[case.takes_long]
    rows = []
    for row in _ROWS_OF_PYTORCH if has_pytorch(case) else _ROWS:
        is_chosen = column is not None and (row[0] == duration or (column == 1 and not duration))
        rows.append(tuple(f"[{c}]" if is_chosen and n == column else c for n, c in enumerate(row)))
    return Grid(("", "better on CPUs", "better on GPUs"), tuple(rows))
