"""What watches the ranks of an attempt beside their log: for hangs, and for what deviates.

Both have threads of their own, and say nothing by themselves: the supervisor asks them at each of
its turns, as it alone writes the log and the status.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional, Sequence

from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.status import Ending, State
from distrain_nb.worker.rank import dry_rank, world
from distrain_nb.worker.supervisor.child import Child
from distrain_nb.worker.supervisor.deviating import DeviationWatch
from distrain_nb.worker.supervisor.hangs import HangWatch
from distrain_nb.worker.supervisor.output import Output

Say = Optional[Callable[[str], None]]


class Watches:
    """The watches of one attempt, which end with it: a next attempt has new ones.

    `stop_reason` says why the run has to end, and `hang` why its ranks make no progress; they are
    empty otherwise. `warns` says that the last note warns of a success that is none.
    """

    def __init__(
        self, folder: Path, launch: Launch, children: Sequence[Child], output: Output
    ) -> None:
        self._folder, self._launch = folder, launch
        self._hangs = HangWatch(folder, children, output).start()
        self._deviations = DeviationWatch(folder, launch).start()
        self._hung = ""
        self.stop_reason = self.hang = ""
        self.warns = False

    def tell(self, say: Say) -> str:
        """Say what the log is to have, once each; return what is to stand beside the state."""
        self._hung = self._hangs.tell(say)
        self._deviations.tell(say)
        self.hang = self._hangs.hang if self._hung else ""
        self.stop_reason = self._hangs.stop_reason or self._deviations.strict_reason
        return _joined(self._hung, self._deviations.note)

    def end(self) -> None:
        """Watch no more: the ranks of a session outlive their run. What ranks in turn have left for
        each other goes."""
        self._hangs.end()
        self._deviations.end()
        dry_rank.clear(self._folder)

    def finish(self, ending: Ending, say: Say) -> Ending:
        """Compare the ranks once more, when the last has ended. Return how the run has ended: with
        --strict, a finding makes a success a failure."""
        self._deviations.finish(say)
        reason = self._deviations.strict_reason
        is_success = ending.state is State.SUCCEEDED
        return Ending(State.FAILED, reason) if is_success and reason else ending

    def last_note(self, state: State) -> str:
        """Return what is to stand beside the last state."""
        alone = world.note(self._folder, len(self._launch.processes))
        self.warns = state is State.SUCCEEDED and bool(alone)
        return _joined(alone if state is State.SUCCEEDED else self._hung, self._deviations.note)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
