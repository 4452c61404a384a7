"""What reducers would bring to a training step, and when they don't pay."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.case import HIDDEN_SHARE
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import resolve
from distrain_nb.layout.sizing import sized
from distrain_nb.layout.traffic import Links, links_of, size, ways

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.case import Case
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.traffic import Way

# Below this, measurements of one's own are needed to see it.
_PAYS_FROM = 1.1

# What the article (GCP-BLOG-RS) measured: machines, GPUs of each, reducers.
_MEASURED = (8, 8, 20)


@dataclass(frozen=True)
class Gain:
    """Steps of `step_s` seconds with an exchange by reducers, and by the faster of the others.

    The backward pass hides as much of an exchange as half a step.
    """

    links: Links
    gradient_bytes: float
    step_s: float
    other: Way
    reducers: Way

    @property
    def throughput(self) -> float:
        """Steps in the time of one without reducers."""
        return self._step(self.other) / self._step(self.reducers)

    @property
    def pays(self) -> bool:
        return self.throughput >= _PAYS_FROM

    def __str__(self) -> str:
        if not self.pays:
            return f"reducers don't pay: {self._why_not()}"
        return (
            f"{self._count()} shorten a step from {duration(self._step(self.other))} to "
            f"{duration(self._step(self.reducers))}, {self.throughput:.2f} times the throughput: a "
            f"worker sends {size(self.reducers.bytes_per_worker)} where a {self.other.name} has it "
            f"send {size(self.other.bytes_per_worker)}"
        )

    def _step(self, way: Way) -> float:
        return self.step_s + max(0.0, way.seconds - self._hidden)

    @property
    def _hidden(self) -> float:
        return HIDDEN_SHARE * self.step_s

    def _count(self) -> str:
        return "1 reducer" if self.links.reducers == 1 else f"{self.links.reducers} reducers"

    def _why_not(self) -> str:
        links, name = self.links, self.other.name
        if self.other.seconds <= self._hidden:
            return (
                f"the backward pass hides {duration(self._hidden)}, and a {name} takes "
                f"{duration(self.other.seconds)} for {size(self.gradient_bytes)} at "
                f"{links.gbps:g} Gbit/s"
            )
        needed = ceil(links.workers * links.gbps / links.reducer_gbps)
        if links.reducers < needed:
            return (
                f"{self._count()} of {links.reducer_gbps:g} Gbit/s take "
                f"{duration(self.reducers.seconds)} to get what {links.workers} workers send, a "
                f"{name} {duration(self.other.seconds)}; {needed} would keep up"
            )
        if links.workers == 2:
            return "of 2 machines, each sends a gradient once in a ring too"
        return (
            f"a step would take {duration(self._step(self.reducers))} in place of "
            f"{duration(self._step(self.other))}, for {self._count()} more"
        )


def gain(gradient_bytes: float, links: Links, step_s: float) -> Gain:
    """What reducers bring to steps of `step_s` seconds, which are those without the exchange."""
    ring, tree, reducers = ways(gradient_bytes, links)
    other = min(ring, tree, key=lambda way: way.seconds)
    return Gain(links, gradient_bytes, step_s, other, reducers)


def beside_the_article(layout: Layout) -> str:
    """The article's reducers beside ours, for a layout of its machines; else empty."""
    job = resolve(layout)
    machines, gpus, reducers = _MEASURED
    counts = {(p.pool.accelerator or "", p.accelerators) for p in job.training}
    pool = sized(job)
    if sum(p.pool.replicas for p in job.training) != machines or pool is None:
        return ""
    if len(counts) != 1 or not all("A100" in name and gpus == n for name, n in counts):
        return ""
    total = sum((p.bandwidth_gbps or 0) * p.pool.replicas for p in job.training)
    own = resolve(job.layout.edited({"reducers": pool})).pool(Role.REDUCERS)
    return (
        f"the article measured +75 % with {reducers} reducers of a type that it doesn't name; "
        f"{pool} is what the documents ask for: reducers that take in all {total:g} Gbit/s of the "
        f"workers. {reducers} reducers do with {total / reducers:g} Gbit/s each, "
        f"{own and own.pool.machine} has {own and own.bandwidth_gbps:g}"
    )


def remarks(case: Case) -> Iterator[str]:
    """What reducers would bring a case, in words: Vertex AI's on GPUs, ours with gloo on CPUs."""
    gpus, layout = case.gpus_per_instance, case.layout
    if gpus is None or case.model_bytes is None or (case.instances or 1) < 2:
        return
    if layout is not None and (layout.on != "vertex" or not gpus):
        return
    links = _links(case)
    if links is None:
        return
    found = gain(case.model_bytes, links, case.step_s)
    if not found.pays:
        yield str(found)
        return
    how = "gloo, on machines of your own" if not gpus else "NCCL on Vertex AI, --reducers auto"
    yield f"{found} ({how})"
    beside = beside_the_article(layout) if layout else ""
    if beside:
        yield beside


def _links(case: Case) -> Links | None:
    """The layout's; of figures alone with as many reducers as machines, which are like them."""
    if case.layout is not None:
        try:
            return links_of(case.layout)
        except OptionError:
            return None
    if case.network_gbps is None or case.instances is None:
        return None
    return Links(case.instances, case.network_gbps, case.instances, case.network_gbps)


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best: `250 ms`."""
    return f"{seconds * 1000:,.3g} ms" if seconds < 1 else f"{seconds:,.3g} s"
