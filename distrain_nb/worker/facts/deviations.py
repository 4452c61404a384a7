"""What is not as it should be between the ranks of a run: causes as fields, and their sentences."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple

BYPASSED, NO_SYNC = "gradients.bypassed", "gradients.no-sync"
UNWRAPPED, LOOSE = "gradients.unwrapped", "gradients.outside"
UNREACHED = "gradients.none"
START, DIFFER, SKIPPED = "weights.start", "weights.differ", "weights.skipped-step"
SAME, UNSHARED, SPLIT, EPOCH = "data.same", "data.unshared", "data.split", "data.epoch"
UNEVEN = "steps.uneven"
MIXED, GONE = "collectives.mixed", "collectives.left"
RATE, LOSS = "numbers.rate", "numbers.loss"
PARTED = "proof.parted"
TOO_LARGE = "memory.too-large"

CODES = (
    *(BYPASSED, NO_SYNC, UNWRAPPED, LOOSE, START, DIFFER, SKIPPED, SAME, UNSHARED, SPLIT, EPOCH),
    *(UNREACHED, UNEVEN, MIXED, GONE, RATE, LOSS, PARTED, TOO_LARGE),
)
SENTENCES = {
    BYPASSED: (
        "gradients were not exchanged in {bypassed} of {steps} steps: what {wrapper} wraps was"
        " called by itself, and {tensor} differs between {ranks} since step {step}. Call the"
        " wrapped model, not its .module"
    ),
    NO_SYNC: (
        "gradients were not exchanged in {held} of {steps} steps: all their forward passes were"
        " under no_sync(), and {tensor} differs between {ranks} since step {step}. Leave the last"
        " pass before optimizer.step() outside of no_sync()"
    ),
    UNWRAPPED: (
        "{ranks} train models of their own: nothing exchanges their gradients, and {tensor} differs"
        " since step {step}. Wrap the model: model = DistributedDataParallel(model){horovod}"
    ),
    LOOSE: (
        "the optimizer has parameters that are in no wrapped model: {tensor} differs between"
        " {ranks} since step {step}, as its gradients are not exchanged. Make it part of the"
        " module that DistributedDataParallel wraps"
    ),
    UNREACHED: (
        "{tensor} has no gradient on any rank in {steps} steps, and stays as it began: no loss"
        " reaches it. Use it in the forward pass, or freeze it: requires_grad_(False)"
    ),
    START: (
        "{ranks} have begun with different weights: {tensor} differs before the first step."
        " Give all ranks those of rank 0 {instead}"
    ),
    DIFFER: (
        "{tensor} differs between {ranks} since step {step} (equal at step {since}), although"
        " gradients were exchanged: look for what one rank alone does to it between these steps"
    ),
    SKIPPED: (
        "{ranks} have exchanged gradients {exchanges} times for {steps} optimizer steps: a rank"
        " has skipped a step or made one more, and {tensor} differs. Let all ranks decide alike,"
        " by a value that they have all-reduced"
    ),
    SAME: (
        "{ranks} train on the same samples in the same order{why}: give the loader"
        " sampler=DistributedSampler(dataset){instead}"
    ),
    UNSHARED: (
        "each rank reads all {count} samples of an epoch, in an order of its own:"
        " give the loader sampler=DistributedSampler(dataset) instead of shuffle=True"
    ),
    SPLIT: (
        "{ranks} share out different datasets: {difference}, so that one rank's training samples"
        " are another's validation samples. Split alike on all ranks: random_split(dataset,"
        " lengths, generator=torch.Generator().manual_seed(0))"
    ),
    EPOCH: ("each epoch has the same order: call sampler.set_epoch(epoch) before it"),
    UNEVEN: (
        "{ranks} have made different numbers of optimizer steps: {counts}{why}. Give all ranks"
        " equally many batches (drop_last=True), or train within model.join()"
    ),
    MIXED: (
        "collective {number} is {first} on {first_ranks} ({first_place}) and {second} on"
        " {second_ranks} ({second_place}): their numbers are mixed. All ranks have to make the same"
        " collectives in the same order"
    ),
    GONE: (
        "{left_ranks} has ended after {left} collectives, while {ranks} is in its collective"
        " {number} ({other_place}): give all ranks equally many steps, or train within"
        " model.join()"
    ),
    RATE: (
        "{ranks} step with different settings of the optimizer at step {step}: {values}. Set them"
        " by a value that all ranks have, such as an all-reduced loss"
    ),
    LOSS: (
        "the loss is {value} on {ranks} alone, at step {step}: the exchange gives it to all ranks."
        " Look at that rank's batch; leave it out on all ranks, or clip"
    ),
    TOO_LARGE: (
        "{ranks} would need more memory than the device has: {memory}. Shard the model further,"
        " take a smaller batch, or recompute activations"
    ),
    PARTED: (
        "step {step} differs from that of one rank on the batches of all: {tensor} {by} on {ranks}"
        " (rounding explains {noise} at most){hint}"
    ),
}


class Deviation(NamedTuple):
    """One fact that differs between ranks, or is equal and should differ.

    `place` is the line that has to change, as far as it is known; `fields` are what the sentence
    says besides.
    """

    code: str
    ranks: Tuple[int, ...]
    place: str = ""
    fields: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """What is wrong and what to write instead, without the place."""
        fields: Dict[str, Any] = {"ranks": named(self.ranks), **self.fields}
        return SENTENCES[self.code].format(**fields)

    @property
    def sentence(self) -> str:
        """The text behind its place."""
        return f"{self.place}: {self.text}" if self.place else self.text


def named(ranks: Sequence[int]) -> str:
    """Name ranks: `rank 2`, `ranks 0 and 1`, `ranks 0, 1 and 3`."""
    numbers = [str(rank) for rank in ranks]
    if len(numbers) < 2:
        return f"rank {''.join(numbers)}"
    shown = numbers if len(numbers) <= 8 else [*numbers[:7], f"{len(numbers) - 7} more"]
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"
