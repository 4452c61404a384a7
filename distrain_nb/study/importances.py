"""How much each parameter has to do with a goal: computed by Optuna, of trials that ended."""

from __future__ import annotations

import importlib.util
import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from distrain_nb.study.files import TrialState
from distrain_nb.tuning.engine import Outcome, SearchEngine, by_name
from distrain_nb.tuning.spec import StudySpec

if TYPE_CHECKING:
    from distrain_nb.study.trial import StudyTrial

_ONE_AT_A_TIME = threading.Lock()
FANOVA = "fANOVA"
FEWEST_TRIALS = 8  # fewer say nothing
EVERY_TRIALS = 5
EVERY_SHARE = 20  # of many trials: what a twentieth of them changes


def importances(spec: StudySpec, trials: Sequence[StudyTrial]) -> dict[str, float]:
    """Shares that add up to 1, by parameter, the largest first, for the first goal; empty for too
    few trials. By fANOVA, Optuna's own choice, where scikit-learn is installed, which that needs.
    PED-ANOVA looks at the best tenth of the trials alone.

    Raises DistrainError where Optuna is missing.
    """
    goal = spec.goals[0]
    valued = _valued(trials, goal.metric)
    if len(valued) < FEWEST_TRIALS or len({trial.goals[goal.metric] for trial in valued}) < 2:
        return {}
    outcomes = [
        (trial.params, Outcome("succeeded", (trial.goals[goal.metric],))) for trial in valued
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluator is experimental there
        study = SearchEngine(spec.edited(goals=(goal,)), outcomes).study
        from optuna import importance

        if method() == FANOVA:
            # A quarter of its usual trees takes a quarter of the time, for nearly the same shares.
            evaluator = importance.FanovaImportanceEvaluator(n_trees=16, seed=0)
        else:
            evaluator = importance.PedAnovaImportanceEvaluator()
        shares = importance.get_param_importances(study, evaluator=evaluator)
    named = {name: float(share) for name, share in by_name(spec, shares).items()}
    return dict(sorted(named.items(), key=lambda item: -item[1]))


def method() -> str:
    """Return by what importances are computed here."""
    return FANOVA if importlib.util.find_spec("sklearn") else "PED-ANOVA"


class Importances:
    """The importances of a study that goes on, computed beside whoever asks for them: importing
    Optuna's evaluators takes seconds."""

    def __init__(self) -> None:
        self._found: Mapping[str, float] = {}
        self._of = 0  # how many trials they were computed of
        self._thread: threading.Thread | None = None
        self._counted: tuple[Sequence[StudyTrial], int] = (), 0

    def of(
        self,
        spec: StudySpec,
        trials: Sequence[StudyTrial],
        *,
        last: bool = False,
        wait: bool = False,
    ) -> Mapping[str, float]:
        """Return those that there are by now; those of all these trials where they are the `last`,
        once they are computed, for which it can `wait`."""
        if wait and self._thread is not None:
            self._thread.join()
        count = self._count(spec, trials)
        more = max(EVERY_TRIALS, self._of // EVERY_SHARE)
        due = count != self._of if last or wait else count >= self._of + more
        if due and count >= FEWEST_TRIALS and not self.computing:
            self._of = count
            self._thread = threading.Thread(
                target=self._take, args=(spec, tuple(trials)), daemon=True
            )
            self._thread.start()
            if wait:
                self._thread.join()
        return self._found

    def _count(self, spec: StudySpec, trials: Sequence[StudyTrial]) -> int:
        """Return how many have a value; the same trials are counted once."""
        known_trials, count = self._counted
        if known_trials is not trials:
            count = len(_valued(trials, spec.goals[0].metric))
            self._counted = trials, count
        return count

    @property
    def computing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _take(self, spec: StudySpec, trials: Sequence[StudyTrial]) -> None:
        """Compute a part; one that can't be computed must not hide the rest of the page."""
        try:
            with _ONE_AT_A_TIME:  # threads that import Optuna at once see it half imported
                self._found = importances(spec, trials)
        except Exception:  # Optuna is missing, or has no answer for such trials
            self._found = {}


def _valued(trials: Sequence[StudyTrial], metric: str) -> list[StudyTrial]:
    """Return those that came to their end with a number."""
    return [
        trial
        for trial in trials
        if trial.state is TrialState.SUCCEEDED and math.isfinite(trial.goals.get(metric, math.nan))
    ]
