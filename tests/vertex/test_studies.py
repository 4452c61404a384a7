"""Studies from a cell to their best trial, on a stand-in that suggests and runs trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud import aiplatform

from distrain_nb import study
from distrain_nb.backends.remote.studies import REHEARSAL_GONE
from distrain_nb.places.vertex.tracking import VERTEX
from distrain_nb.study import Study
from distrain_nb.tracking.request import pending
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.study.conftest import process_of
from tests.study.documents import CLUSTER_SPEC, PRINTS, TF_CONFIG, cluster_spec, tf_config
from tests.tracking.experiments import experiments, sdk

pytestmark = pytest.mark.slow

# A bowl whose lowest point is at 0.3, in the cell of any place.
BOWL = """
from distrain_nb import log_metrics
for step in range(3):
    log_metrics({"val/loss": (x - 0.3) ** 2 + 1 / (step + 1)}, step=step)
tried = [x, width]
"""
TUNE = {"tune": ["x=0.0..1.0", "width=16|32"], "goal": "min:val/loss", "result": "tried"}
# Ten values at random all miss a region that is this wide once in 30,000 times.
NEAR = 0.35


@pytest.fixture
def home(without_docker: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in without_docker.items():
        monkeypatch.setenv(name, value)
    return Path(without_docker["DISTRAIN_HOME"])


def rehearsed(code: str, base: str, **options: object) -> Study:
    chosen = {"on": "vertex", "rehearse": "", "primary": "n1-standard-4", "base": base, **options}
    return study.tune(code, **chosen).wait(400)


def test_one_cell_finds_the_same_region_on_vertex_ai_and_on_this_machine(
    home: Path, base: str
) -> None:
    filed = {"experiment": "bowls", "service_account": "a@b.iam.gserviceaccount.com"}
    found = rehearsed(
        BOWL, base, trials=10, parallel=3, name="bowl", project="rehearsal", **filed, **TUNE
    )
    here = study.tune(BOWL, trials=10, parallel=3, name="bowl", **TUNE).wait(240)
    for each in (found, here):
        assert set(each.trials["state"]) == {"succeeded"} and len(each.trials) == 10
        best = each.best
        assert abs(best.params["x"] - 0.3) < NEAR
        assert best.goals["val/loss"] == pytest.approx((best.params["x"] - 0.3) ** 2 + 1 / 3)
        assert best.results["tried"] == [best.params["x"], best.params["width"]]
        assert best.run.metrics()["val/loss"].tolist()[-1] == pytest.approx(best.goals["val/loss"])
    assert found.best.run.backend == "vertex" and found.best.steps == 3
    assert len({trial.run_id for trial in found.all_trials()}) == 10
    are_experiments_runs(found, home)


def are_experiments_runs(found: Study, home: Path) -> None:
    """As the SDK reads what the rehearsal keeps, which may come later than the end of the study."""
    assert eventually(lambda: not pending(VERTEX), 240)
    kept = home / "rehearsal" / "experiments.db"
    with experiments(kept) as address, sdk(address, "rehearsal"):
        rows = aiplatform.get_experiment_df("bowls").set_index("run_name")
    assert set(rows["state"]) == {"COMPLETE"} and len(rows) == 10
    for trial in found.all_trials():
        row = rows.loc[trial.run.name]
        assert row["param.x"] == trial.params["x"]
        assert row["metric.val/loss"] == pytest.approx(trial.goals["val/loss"])


def test_a_rehearsal_that_is_killed_ends_its_study_and_its_runs(home: Path, base: str) -> None:
    cell = f"{BOWL}\nimport time\ntime.sleep(600)"
    where = {"on": "vertex", "rehearse": "", "primary": "n1-standard-4", "base": base}
    found = study.tune(cell, trials=2, **where, **TUNE)
    assert eventually(lambda: [trial.steps for trial in found.all_trials()] == [3], 200)
    process_of(found).kill()
    assert eventually(lambda: found.state.final, 60)
    assert found.status.error == REHEARSAL_GONE
    assert [str(trial.state) for trial in found.all_trials()] == ["cancelled"]
    assert found[1].why == REHEARSAL_GONE and found[1].run.state is State.FAILED


def test_a_trial_prints_its_place_as_the_document_does(home: Path, base: str) -> None:
    """Of a chief, two workers and a parameter server, the first worker."""
    pools = {"workers": "2*n1-standard-4", "servers": "n1-standard-4"}
    found = rehearsed(PRINTS, base, tune="lr=0.1..0.2", goal="min:loss", trials=1, **pools)
    log = found[1].run.logs(1)
    assert tf_config(log) == TF_CONFIG
    assert cluster_spec(log) == CLUSTER_SPEC
