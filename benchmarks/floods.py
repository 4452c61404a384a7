"""The cells of `benchmarks/monitor.py`: the same lines and points, shown in different ways.

Lines come at 20,000 a second for 5 seconds, points for 10 seconds in 100 ticks of 4 x 1,000.
Whoever can't keep up is held up, or falls behind: nothing is left out for it.
"""

from __future__ import annotations

from dataclasses import dataclass

LINES, POINTS = 100_000, 100_000
RANKS = 4

_LINE = 'f"rank {rank} line {n} loss {1 / (n + 1):.6f} and some words about how the training goes"'
_PACE = """
import time
def ticks(count, every):
    began = time.monotonic()
    for tick in range(count):
        time.sleep(max(0, began + tick * every - time.monotonic()))
        yield tick
"""

OURS = f"""%%distrain -n {RANKS} --name flood
import os
{_PACE}
rank = int(os.environ["RANK"])
for tick in ticks(250, 0.02):
    for n in range(tick * 100, tick * 100 + 100):
        print({_LINE})
"""


def as_fast_as_possible(lines: int) -> str:
    """Return a cell whose ranks print so many lines without a pause, a rare word among them."""
    return f"""%%distrain -n {RANKS} --name flood
import os
rank, each = int(os.environ["RANK"]), {lines // RANKS}
for n in range(each):
    print({_LINE} if rank or n != 3 * each // 4 else "the needle is here")
"""


_IN_A_THREAD = f"""
import contextvars, threading
{_PACE}
def lines(tick, size):
    for n in range(tick * size // {RANKS}, (tick + 1) * size // {RANKS}):
        for rank in range({RANKS}):
            yield {_LINE}
def work():
WORK
thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
thread.start()
thread.join()
"""
PRINT = _IN_A_THREAD.replace(
    "WORK",
    """
    for tick in ticks(250, 0.02):
        for line in lines(tick, 400):
            print(line)
""",
)
# As a considerate program does it: a message ten times a second, not one for each line.
OUTPUT = (
    "import ipywidgets\nfrom IPython.display import display\n"
    "output = ipywidgets.Output()\ndisplay(output)\n"
) + _IN_A_THREAD.replace(
    "WORK",
    """
    for tick in ticks(50, 0.1):
        output.append_stdout("".join(line + "\\n" for line in lines(tick, 2000)))
""",
)

_LOSSES = """
import math
NAMES = ("train/loss", "train/accuracy", "test/loss", "test/accuracy")
def values(step):
    return [math.exp(-step / 30000) + 0.05 * math.sin(step * (n + 1)) for n in range(4)]
"""
OUR_POINTS = f"""%%distrain -n 1 --name points
from distrain_nb import log_metrics
{_PACE}{_LOSSES}
for tick in ticks(100, 0.1):
    for step in range(tick * 1000, tick * 1000 + 1000):
        log_metrics(dict(zip(NAMES, values(step))), step=step)
"""
FIGURE_POINTS = f"""
from plotly.graph_objects import FigureWidget
from plotly.subplots import make_subplots
from IPython.display import display
import numpy as np
{_PACE}{_LOSSES}
figure = FigureWidget(make_subplots(2, 2))
for n, name in enumerate(NAMES):
    figure.add_scatter(x=[], y=[], name=name, row=n // 2 + 1, col=n % 2 + 1)
display(figure)
all_values = np.empty((4, {POINTS}))
for tick in ticks(100, 0.1):
    for step in range(tick * 1000, tick * 1000 + 1000):
        all_values[:, step] = values(step)
    with figure.batch_update():
        for line, so_far in zip(figure.data, all_values):
            line.x, line.y = np.arange(step + 1), so_far[: step + 1]
"""
LIVELOSSPLOT_POINTS = f"""%matplotlib inline
from livelossplot import PlotLosses
from livelossplot.outputs import MatplotlibPlot
{_PACE}{_LOSSES}
plot = PlotLosses(outputs=[MatplotlibPlot()], groups={{name: [name] for name in NAMES}})
for tick in ticks(100, 0.1):
    for step in range(tick * 1000, tick * 1000 + 1000):
        plot.update(dict(zip(NAMES, values(step))))
    plot.send()
"""


@dataclass(frozen=True)
class Way:
    """One way of showing something: its name in the figures, and its cells, the flood the last."""

    name: str
    cells: tuple[str, ...]


LOAD = "%load_ext distrain_nb"
LINE_WAYS = (
    Way("ours", (LOAD, OURS)),
    Way("print", (PRINT,)),
    Way("output", (OUTPUT,)),
)
POINT_WAYS = (
    Way("ours", (LOAD, OUR_POINTS)),
    Way("figurewidget", (FIGURE_POINTS,)),
    Way("livelossplot", (LIVELOSSPLOT_POINTS,)),
)
