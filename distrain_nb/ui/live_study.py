"""The view of a study where a page can keep it current: what it is told, and what it asks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.study.answers import ACTIONS, answer, apply_action, page_of
from distrain_nb.study.importances import Importances
from distrain_nb.ui.frontend import kernel_id
from distrain_nb.ui.live_table import LiveTable
from distrain_nb.ui.widgets import STATIC, LiveWidget
from distrain_nb.worker.supervisor.heartbeat import is_watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.study import Study
    from distrain_nb.study.summary import StudySummary

SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.4, 4.0
BYTES_A_SECOND = 400_000


class StudyWidget(LiveWidget):
    """State, charts and trials of a study. See `page/src/study/` for the other half.

    `state` is what the page was told last; `waiting` says that a cell waits for the study, which
    an interrupt stops.
    """

    _esm = STATIC / "study.js"
    _css = STATIC / "study.css"

    study = traitlets.Int().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    waiting = traitlets.Bool(False).tag(sync=True)
    kernel = traitlets.Unicode("").tag(sync=True)


class LiveStudy(LiveTable):
    """Tells a page of one displayed study, and answers it, as long as the kernel lives."""

    def __init__(self, study: Study, summary: StudySummary, importances: Importances) -> None:
        self._study = study
        self._importances = importances
        self._due = 0.0
        self._heard_of = False
        super().__init__()
        self.tell(summary)

    def _new_widget(self) -> Any:
        return StudyWidget(self._store.folder, study=self._study.id, kernel=kernel_id())

    @property
    def is_seen(self) -> bool:
        """Whether a page has ever said that it shows this."""
        self._heard_of = self._heard_of or is_watched(self._study.folder)
        return self._heard_of

    def tell(self, summary: StudySummary, *, last: bool = False) -> None:
        """Bring the page up to date; more seldom where that is much, the `last` time at once."""
        now = time.monotonic()
        served = is_watched(self._study.folder)  # the page has it from its server
        if (served or now < self._due) and not last:
            return
        state = page_of(summary, self._importances.of(summary.spec, summary.trials))
        if state["seen"] != self.widget.state.get("seen"):
            self.widget.state = state
        wait = len(str(state["charts"])) / BYTES_A_SECOND
        self._due = now + min(max(SHORTEST_WAIT_S, wait), LONGEST_WAIT_S)

    def _hear(self, _: str) -> None:
        self._heard_of = True

    def _answer(self, path: str, query: dict[str, str]) -> Mapping[str, object]:
        if path == "study":
            return answer(self._study, self._importances, query)
        if path not in ACTIONS or "run" in query:
            return super()._answer(path, query)
        apply_action(self._study, path, query)
        return {}
