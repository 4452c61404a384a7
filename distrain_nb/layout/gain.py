"""Estimates what reducers would bring to a training step, and when they don't pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from distrain_nb.errors import OptionError
from distrain_nb.layout.case import HIDDEN_SHARE, Case
from distrain_nb.layout.choices import roles
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import place_of
from distrain_nb.layout.pool import Role
from distrain_nb.layout.reduction_server import reduction_pool
from distrain_nb.layout.resolved import resolve
from distrain_nb.layout.traffic import Links, Traffic, Way, links_of, size, ways

# Below this, measurements of one's own are needed to see it.
_PAYS_FROM = 1.1

# What the article (GCP-BLOG-RS) measured: machines, GPUs of each, reducers.
_MEASURED = (8, 8, 20)


@dataclass(frozen=True)
class Gain:
    """The gain of reducers: steps of `step_s` seconds with them, and with the faster other way.

    The backward pass hides as much of an exchange as half a step.
    """

    links: Links
    gradient_bytes: float
    step_s: float
    faster: Way
    reducers: Way

    @property
    def throughput(self) -> float:
        """Steps in the time of one without reducers."""
        return self._step(self.faster) / self._step(self.reducers)

    @property
    def pays(self) -> bool:
        """Whether reducers raise the throughput enough to be advised."""
        return self.throughput >= _PAYS_FROM

    def __str__(self) -> str:
        if not self.pays:
            return f"reducers don't pay: {self._why_not()}"
        return (
            f"{self._count()} shorten a step from {duration(self._step(self.faster))} to "
            f"{duration(self._step(self.reducers))}, {self.throughput:.2f} times the throughput: a "
            f"worker sends {size(self.reducers.bytes_per_worker)} where a {self.faster.name} has "
            f"it send {size(self.faster.bytes_per_worker)}"
        )

    def _step(self, way: Way) -> float:
        return self.step_s + max(0.0, way.seconds - self._hidden)

    @property
    def _hidden(self) -> float:
        return HIDDEN_SHARE * self.step_s

    def _count(self) -> str:
        return "1 reducer" if self.links.reducers == 1 else f"{self.links.reducers} reducers"

    def _why_not(self) -> str:
        links, name = self.links, self.faster.name
        if self.faster.seconds <= self._hidden:
            return (
                f"the backward pass hides {duration(self._hidden)}, and a {name} takes "
                f"{duration(self.faster.seconds)} for {size(self.gradient_bytes)} at "
                f"{links.gbps:g} Gbit/s"
            )
        needed = ceil(links.workers * links.gbps / links.reducer_gbps)
        if links.reducers < needed:
            return (
                f"{self._count()} of {links.reducer_gbps:g} Gbit/s take "
                f"{duration(self.reducers.seconds)} to get what {links.workers} workers send, a "
                f"{name} {duration(self.faster.seconds)}; {needed} would keep up"
            )
        if links.workers == 2:
            return "of 2 machines, each sends a gradient once in a ring too"
        return (
            f"a step would take {duration(self._step(self.reducers))} in place of "
            f"{duration(self._step(self.faster))}, for {self._count()} more"
        )


def gain(gradient_bytes: float, links: Links, step_s: float) -> Gain:
    """Estimate what reducers save of a step. `step_s`: seconds per step without communication."""
    ring, tree, reducers = ways(gradient_bytes, links)
    faster = min(ring, tree, key=lambda way: way.seconds)
    return Gain(links, gradient_bytes, step_s, faster, reducers)


def article_comparison(layout: Layout) -> str:
    """Return the article's reducers beside ours, for a layout of its machines; else empty."""
    job = resolve(layout)
    machines, gpus, reducers = _MEASURED
    counts = {(p.pool.accelerator or "", p.accelerators) for p in job.training}
    pool = reduction_pool(job)
    if sum(p.pool.replicas for p in job.training) != machines or pool is None:
        return ""
    if len(counts) != 1 or not all("A100" in name and gpus == n for name, n in counts):
        return ""
    total = sum((p.bandwidth_gbps or 0) * p.pool.replicas for p in job.training)
    ours = resolve(job.layout.edited({"reducers": pool})).pool(Role.REDUCERS)
    return (
        f"the article measured +75 % with {reducers} reducers of a type that it doesn't name; "
        f"{pool} is what the documents ask for: reducers that take in all {total:g} Gbit/s of the "
        f"workers. {reducers} reducers do with {total / reducers:g} Gbit/s each, "
        f"{ours and ours.pool.machine} has {ours and ours.bandwidth_gbps:g}"
    )


def exchange(case: Case) -> Traffic | None:
    """Estimate the exchange of a case's gradient by a ring, by a tree, and by reducers.

    Reducers are left out if the case can't have them. The result is None for one machine, or if
    machines, network or gradient are not known.
    """
    links = _links(case)
    if links is None or case.model_bytes is None or case.gpus_per_instance is None:
        return None
    all_ways = ways(case.model_bytes, links)
    shown = all_ways[:-1] if _why_none(case) else all_ways
    return Traffic(case.model_bytes, links.workers, links.gbps, shown)


def remarks(case: Case, where: str = "") -> Iterator[str]:
    """Say what a case gains by reducers, or why it can't have any.

    *where* begins the sentence on the gain. Vertex AI's reducers are for GPUs, and those of this
    package for gloo on CPUs.
    """
    links = _links(case)
    if links is None or case.model_bytes is None or case.gpus_per_instance is None:
        return
    why_none = _why_none(case)
    saving = gain(case.model_bytes, links, case.step_s)
    if why_none or not saving.pays:
        yield why_none or f"{where}{saving}"
        return
    on_gpus = case.gpus_per_instance > 0
    how = "NCCL on Vertex AI, --reducers auto" if on_gpus else "gloo, on machines of your own"
    yield f"{where}{saving} ({how})"
    beside = article_comparison(case.layout) if case.layout else ""
    if beside:
        yield beside


def _why_none(case: Case) -> str:
    """Return why a case can't have reducers; empty if it can."""
    layout, on_gpus = case.layout, bool(case.gpus_per_instance)
    if layout and Role.REDUCERS not in roles(layout.on):
        return f"{layout.title} has no reducers"
    place = place_of(layout.on) if layout else None
    if place and place.offers is None:
        return f"reducers on {place.title} are for trying out: nothing waits for a link"
    why_no = place.offers.why_no_reducers(on_gpus=on_gpus) if place and place.offers else ""
    if why_no:
        return why_no
    if not on_gpus and case.framework not in (None, "pytorch", "huggingface"):
        return "reducers on CPUs are for gloo, which PyTorch has"
    return ""


def _links(case: Case) -> Links | None:
    """Return the links of a case's machines and reducers.

    Without a layout with reducers, there are as many reducers as machines, with the same links.
    """
    if case.network_gbps is None or case.instances is None or case.instances < 2:
        return None
    of_case = Links(case.instances, case.network_gbps, case.instances, case.network_gbps)
    try:
        of_layout = links_of(case.layout) if case.layout else of_case
    except OptionError:
        return of_case
    return replace(of_layout, workers=of_case.workers, gbps=of_case.gbps)


def duration(seconds: float) -> str:
    """Return seconds in the unit that reads best: `250 ms`."""
    return f"{seconds * 1000:,.3g} ms" if seconds < 1 else f"{seconds:,.3g} s"
