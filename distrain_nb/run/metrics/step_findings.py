"""Sentences about a run's step times: their shares, and what costs much of a step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.traffic import size
from distrain_nb.run.metrics.rank_times import FEWEST_STEPS
from distrain_nb.worker.metrics.step_times import COMPUTE, DATA, EXCHANGE, KINDS, REST, SAVE

if TYPE_CHECKING:
    from distrain_nb.run.metrics.rank_times import StepTimes

SHORTEST_S = 10.0  # of all steps; less says little
# Shares of a step from which on a finding names a kind.
DATA_SHARE, EXCHANGE_SHARE, SAVE_SHARE = 0.2, 0.25, 0.1
MOST_WORKERS = 32
NAMES = {
    DATA: "waiting for data",
    COMPUTE: "computing",
    EXCHANGE: "exchanging",
    SAVE: "saving",
    REST: "the rest",
}


def sentence_of(times: StepTimes) -> str:
    """Return the shares in one sentence: `a step takes 20 ms: 61 % waiting for data, …`; an empty
    one without steps."""
    if not times.ranks:
        return ""
    named = [kind for r in times.ranks.values() for kind in r.means if kind not in KINDS]
    shares = {kind: times.share(kind) for kind in dict.fromkeys((*KINDS, *named))}
    parts = [
        f"{share:.0%}".replace("%", " %") + f" {NAMES.get(kind, kind)}"
        for kind, share in shares.items()
        if share >= 0.005
    ]
    return f"a step takes {_ms(times.step_s)}: {', '.join(parts)}"


def findings_of(times: StepTimes) -> tuple[Finding, ...]:
    """Return what costs much of a step, and what to write: none before ten steps and 10 s."""
    steps = min((r.steps for r in times.ranks.values()), default=0)
    if steps < FEWEST_STEPS or steps * times.step_s < SHORTEST_S:
        return ()
    late = _late(times)
    parts = [_data(times), late, _exchange(times, late is not None), _save(times)]
    return tuple(finding for finding in parts if finding)


def _data(times: StepTimes) -> Finding | None:
    share, workers = times.share(DATA), max(r.workers for r in times.ranks.values())
    if share < DATA_SHARE:
        return None
    loader = f" ({workers} loader worker{'' if workers == 1 else 's'} a rank)"
    waits = f"{_percent(share)} of a step is waiting for data{loader if workers >= 0 else ''}"
    if workers < 0:
        return _warning("time.data", f"{waits}: read ahead, or read shards (%distrain shard)")
    # So many batches at once take as long as all else of a step.
    busy = times.step_s * workers if workers else times.mean(DATA)
    enough = math.ceil(busy / max(times.step_s - times.mean(DATA), 1e-9))
    count = min(MOST_WORKERS, max(workers + 1, enough))
    line = f"DataLoader(…, num_workers={count}, persistent_workers=True)"
    return _warning("time.data", f"{waits}: write {line}, or read shards (%distrain shard)")


def _exchange(times: StepTimes, one_is_late: bool) -> Finding | None:
    # The last rank to come waits for the transfer alone.
    waits = [r.means.get(EXCHANGE, 0.0) for r in times.ranks.values()]
    seconds = min(waits) if one_is_late else times.mean(EXCHANGE)
    share = seconds / times.step_s
    if share < EXCHANGE_SHARE:
        return None
    count = times.gradient_bytes
    gradients = f" ({_ms(seconds)} for {size(count)} of gradients)" if count else ""
    return _warning(
        "time.exchange",
        f"the exchange takes {_percent(share)} of a step{gradients}: "
        "write larger batches, or accumulate gradients (with model.no_sync():), "
        "or compare places with %distrain advise",
    )


def _save(times: StepTimes) -> Finding | None:
    share = times.share(SAVE)
    if share < SAVE_SHARE:
        return None
    saving = sum(r.means.get(SAVE, 0.0) > 0 for r in times.ranks.values())
    alone = ", and on rank 0 alone (if rank == 0:)" if saving > 1 else ""
    return _warning(
        "time.save",
        f"{_percent(share)} of a step is saving: save every so many steps{alone}",
    )


def _late(times: StepTimes) -> Finding | None:
    """Return the finding about the rank that comes last to the exchange, if one does."""
    if not times.late:
        return None
    rank, (seconds, window) = max(times.late.items(), key=lambda item: item[1][0])
    of_rank = times.ranks[rank]
    begins = int(of_rank.ends[window] - of_rank.counts[window]) + 1
    arrives = f"arrives {_ms(seconds)} after the others"
    since = f" since step {begins}" if window else ""
    why = _why(times, rank, window)
    return _warning("time.slow-rank", f"rank {rank} {arrives}{since}: {why}")


def _why(step_times: StepTimes, rank: int, window: int) -> str:
    """Say what a rank does longer than the others."""
    times, others = step_times.ranks[rank], [r for n, r in step_times.ranks.items() if n != rank]
    more = {
        kind: times.median(kind, window) - float(np.median([r.median(kind) for r in others]))
        for kind in times.seconds
        if kind != EXCHANGE
    }
    kind = max(more, key=lambda kind: more[kind])
    advice = {
        DATA: "look at where its data is",
        COMPUTE: "look at its CPU and GPU in Resources by rank",
        SAVE: "save less often",
    }
    todo = advice.get(kind, "do that less often, or on all ranks")
    return f"{NAMES.get(kind, kind)} takes it {_ms(more[kind])} longer; {todo}"


def _warning(code: str, message: str) -> Finding:
    return Finding(code, Severity.WARNING, "", message)


def _ms(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
