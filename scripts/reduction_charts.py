"""The charts of docs/reduction-server.md: `python -m scripts.reduction_charts [FILE]`.

Lines are the model of `distrain_nb.layout.traffic`, which is the article's; points are what
`benchmarks/reduction.py --record` has measured.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot

from distrain_nb.layout.traffic import Links, ways

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "reduction.json"
PICTURE = ROOT / "docs" / "reduction-server.png"

_MBIT, _DELAY_MS, _LARGE, _TINY = 100, 5, 25_000_000, 4_000
_MODEL = ("ring", "tree", "reducers")
_COLOURS = {"ring": "#c2410c", "tree": "#6b7280", "reducers": "#1d4ed8"}
# What the benchmark calls them, its marker, and the line that it belongs to.
_POINTS = {
    "gloo": ("gloo's ring", "o", "ring"),
    "Open MPI, ring": ("Open MPI's ring", "x", "ring"),
    "Open MPI, Rabenseifner": ("Open MPI, Rabenseifner", "^", "tree"),
    "reducers": ("reducers", "s", "reducers"),
}


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Bytes that a worker sends, and time of a tiny exchange, against the number of workers."""
    pyplot.rcParams.update({"font.size": 9, "font.family": "sans-serif"})
    figure, (transfer, latency) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    counts = range(2, 17)
    for number, name in enumerate(_MODEL):
        found = [ways(1, Links(n, 1, n, 1))[number] for n in counts]
        style = {"color": _COLOURS[name], "label": f"{name}, model", "linewidth": 1.2}
        transfer.plot(counts, [way.bytes_per_worker for way in found], **style)
        latency.plot(counts, [way.hops * _DELAY_MS for way in found], **style)
    for by, (label, marker, line) in _POINTS.items():
        style = {"color": _COLOURS[line], "marker": marker, "linestyle": "", "label": label}
        sent = _at(rows, by, 0, _LARGE)
        transfer.plot([n for n, _ in sent], [row["sent"] / _LARGE for _, row in sent], **style)
        times = _at(rows, by, _DELAY_MS, _TINY)
        latency.plot([n for n, _ in times], [1000 * row["seconds"] for _, row in times], **style)
    transfer.set(title="Sent by a worker, in gradients", xlabel="workers", ylim=(0, 2.2))
    latency.set(
        title=f"Exchange of 4 kB, hops of {_DELAY_MS} ms: ms", xlabel="workers", ylim=(0, None)
    )
    for axes in (transfer, latency):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.set_xticks([2, 4, 8, 12, 16])
    transfer.legend(fontsize=7, loc="lower right")
    figure.savefig(file, dpi=160)


def _at(
    rows: list[dict[str, Any]], by: str, delay_ms: int, size: int
) -> list[tuple[int, dict[str, Any]]]:
    """What was measured at a size; of reducers where there are as many as workers."""
    found = []
    for row in rows:
        wanted = f"{row['workers']} reducers" if by == "reducers" else by
        place = (row["mbit"], row["delay_ms"], row["bytes"])
        if row["by"] == wanted and place == (_MBIT, delay_ms, size):
            found.append((row["workers"], row))
    return found


if __name__ == "__main__":
    draw(json.loads(MEASURED.read_text()), Path(sys.argv[1]) if sys.argv[1:] else PICTURE)
