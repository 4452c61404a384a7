"""What the ranks of a run on this machine do right now: a sentence, their stacks, a flame graph."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.errors import OptionError, RunNotReady
from distrain_nb.worker.files.folder import BEGUN_FILE, CANCEL_FILE, WHERE_FILE
from distrain_nb.worker.files.marks import pid_of
from distrain_nb.worker.files.status import Process, State
from distrain_nb.worker.supervisor.acts import HOLDS, MOVES, Act, SeenRank, doing
from distrain_nb.worker.supervisor.looks import RankProcess, observe_ranks
from distrain_nb.worker.supervisor.verdict import judge

if TYPE_CHECKING:
    from distrain_nb.run.run import Run

# A box for each frame, as wide as its share of the samples; what called it is above it.
_BOX = (
    '<div style="flex:{count} 1 0;min-width:0"><div title="{title}" style="border-radius:2px;'
    "margin:1px;padding:1px 4px;font:11px monospace;white-space:nowrap;overflow:hidden;"
    'text-overflow:ellipsis;background:rgba({colour})">{name}</div>'
    '<div style="display:flex">{below}</div></div>'
)
_OF_PROGRAM, _OF_LIBRARIES = "59,130,246,0.3", "128,128,128,0.15"  # blue, and a grey of any theme
_SCALE = (
    '<p style="font-size:11px">A box is a call, as wide as its share of {count} samples of each'
    f' thread. <span style="background:rgba({_OF_PROGRAM});padding:0 4px">Your code</span>'
    f' <span style="background:rgba({_OF_LIBRARIES});padding:0 4px">libraries</span></p>'
)


class ShownFrame(NamedTuple):
    """A frame in words, and whether it is of the program itself."""

    words: str
    is_own: bool


@dataclass
class Box:
    """A frame of the flame graph: how many samples have it, and the frames that it called."""

    count: int = 0
    below: dict[ShownFrame, Box] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Stacks:
    """The stacks of all threads of a run's ranks, twenty times within a few seconds."""

    sentence: str
    ranks: tuple[tuple[Act, SeenRank], ...]

    def __str__(self) -> str:
        """Write the sentence, and each rank's threads: the program's own frames are marked."""
        return "\n".join((self.sentence, *(line for r in self.ranks for line in _lines(*r))))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Draw a flame graph for each rank, the stacks as text below."""
        graphs = "".join(_graph(act, frames) for act, frames in self.ranks)
        samples = max((len(r.answer["samples"]) for _, r in self.ranks if r.answer), default=0)
        graphs = _SCALE.format(count=samples) + graphs if samples else graphs
        text = f"<details><summary>stacks</summary><pre>{html.escape(str(self))}</pre></details>"
        return f"<div><p>{html.escape(self.sentence)}</p>{graphs}{text}</div>"


def stacks_of(run: Run) -> Stacks:
    """Ask all ranks of a run where they are. Nothing is stopped or interrupted.

    Raises:
        RunNotReady: the run is not at work.
        OptionError: its ranks are on other machines, or were not to be looked at.
    """
    status = run.status
    if status.state is not State.RUNNING:
        raise RunNotReady(f"run {run.id} is not running ({status.state}): it has no stacks")
    members = [
        RankProcess(process.label, process.index, _pid(run.folder, process))
        for process in status.processes
        if (run.folder / WHERE_FILE.format(process.index)).exists()
    ]
    if not members:
        raise OptionError(
            f"no rank of run {run.id} answers on this machine: with --hang-after 0 ranks never do; "
            "elsewhere, the worker writes into the log where ranks wait"
        )
    try:
        ranks, _ = observe_ranks(run.folder, members)
    except OSError as error:
        raise OptionError(f"can't ask the ranks of run {run.id}: {error}") from None
    acts = [doing(rank) for rank in ranks]
    # A rank that is ending doesn't answer either.
    if (run.folder / CANCEL_FILE).exists():
        acts = [Act(a.label, MOVES, "is ending") if a.kind == HOLDS else a for a in acts]
    verdict = judge(acts)
    sentence = verdict.text if verdict else "; ".join(map(_in_words, acts))
    return Stacks(f"run {run.id}: {sentence}", tuple(zip(acts, ranks, strict=True)))


def _pid(folder: Path, process: Process) -> int | None:
    """Return the process id of a rank that lives; ranks of `mpirun` note their own."""
    if (folder / BEGUN_FILE.format(process.index)).exists():
        return pid_of(folder, process.index)
    return None if process.outcome else process.pid


def _in_words(act: Act) -> str:
    return f"{act.label} {act.words}" + (f" ({act.place})" if act.place else "")


def _lines(act: Act, rank: SeenRank) -> Iterator[str]:
    yield f"\n{_in_words(act)}"
    if rank.answer is None:
        yield from (f"  {line}" for line in rank.held.splitlines())
        return
    for thread in rank.answer["samples"][-1]:
        yield f"  {thread['name'] or 'a thread'}:"
        for frame in _frames(thread):
            yield f"  {'>' if frame.is_own else ' '} {frame.words}"


def _frames(thread: Mapping[str, Sequence[Sequence[object]]]) -> Iterator[ShownFrame]:
    """Yield the frames of a thread, the outermost first."""
    for file, line, function, _, is_own, *_ in reversed(thread["frames"]):
        yield ShownFrame(f"{function}, {file}, line {line}", bool(is_own))


def _graph(act: Act, rank: SeenRank) -> str:
    root = Box()
    samples = rank.answer["samples"] if rank.answer else ()
    for thread in (thread for sample in samples for thread in sample):
        box = root
        for frame in _frames(thread):
            box = box.below.setdefault(frame, Box())
            box.count += 1
    words = html.escape(_in_words(act))
    return f'<p><b>{words}</b></p><div style="display:flex">{_boxes(root)}</div>'


def _boxes(box: Box) -> str:
    return "".join(
        _BOX.format(
            count=inner.count,
            title=html.escape(f"{frame.words}: {inner.count} samples", quote=True),
            colour=_OF_PROGRAM if frame.is_own else _OF_LIBRARIES,
            name=html.escape(frame.words),
            below=_boxes(inner),
        )
        for frame, inner in box.below.items()
    )
