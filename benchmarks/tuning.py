"""A study's time per trial over the training itself, and the steps that early stopping saves.

`python benchmarks/tuning.py [TRIALS]`, 50 trials unless you say; the last line is one JSON object.
A trial is a job of two ranks with PyTorch that meet and train for a moment, one at a time. Overhead
is the seconds per trial less those that rank 0 has trained. The rivals are

- Optuna, whose `joblib` process starts torchrun for each trial and reads what it prints;
- Ray Tune, whose trials run Ray Train's TorchTrainer (`benchmarks/ray_study.py`), in an interpreter
  of its own in `.cache/benchmark-tuning`, which the first run makes.

They take turns, each time with a fifth of the trials; medians of the five count. Our overhead has
the start of a study in it and Optuna's that of its process, Ray's not that of its cluster.

`steps_saved_…` is the part of all steps that a rule saves on recorded learning curves
(`curves.json`: 60 networks on scikit-learn's digits with hyperparameters at random, their loss on
held-out data after each of 40 epochs; `python benchmarks/tuning.py --record` makes it anew), and
`best_lost_…` how much worse the best last value is that is found so.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe
from distrain_nb.tuning.spec import DecayCurveStopping, MedianStopping, Stopping
from distrain_nb.tuning.stopping import reason_to_stop

CURVES = Path(__file__).with_name("curves.json")
NETWORKS, EPOCHS = 60, 40
ROUNDS = 5
INTERPRETER = Path(__file__).resolve().parents[1] / ".cache/benchmark-tuning"
RAY = ("ray[tune,train]", "optuna", f"torch=={version('torch').partition('+')[0]}")

# What each rank does, with `lr` from wherever it comes.
TRAIN = """
import time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
if not dist.is_initialized():  # as Ray Train does
    dist.init_process_group("gloo")
begun = time.perf_counter()
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
x = torch.randn(256, 16)
for _ in range(50):
    loss = ((model(x).squeeze() - x.sum(1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
took = time.perf_counter() - begun
"""
OURS = (
    TRAIN
    + """
from distrain_nb import log_metrics
log_metrics(loss=loss.item(), took=took)
dist.destroy_process_group()
"""
)
THEIRS = (
    "import sys\nlr = float(sys.argv[1])\n"
    + TRAIN
    + """
if dist.get_rank() == 0:
    print("DONE", loss.item(), took, flush=True)
dist.destroy_process_group()
"""
)


def ours(trials: int) -> float:
    """Seconds of overhead per trial of a study here, its start included."""
    os.environ["DISTRAIN_HOME"] = tempfile.mkdtemp(prefix="distrain-bench-")
    from distrain_nb import tune

    begun = time.perf_counter()
    study = tune(
        OURS, tune="lr=0.001..0.1:log", goal="min:loss", trials=trials, ranks_per_replica=2
    ).wait()
    wall = time.perf_counter() - begun
    took = [float(trial.run.metrics()["took"].iloc[-1]) for trial in study.all_trials()]
    assert len(took) == trials
    return wall / trials - float(np.mean(took))


def torchrun(folder: Path, lr: float) -> tuple[float, float]:
    """The loss and the seconds of training that a job of torchrun prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ran = subprocess.run(
        [*command, str(folder / "train.py"), str(lr)], capture_output=True, text=True, check=True
    )
    done = next(line for line in ran.stdout.splitlines() if line.startswith("DONE"))
    _, loss, took = done.split()
    return float(loss), float(took)


def some_trials(folder: Path, trials: int) -> list[float]:
    """What one process of joblib does of a study that its file shares."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(folder / "optuna.log")))
    study = optuna.create_study(study_name="rival", storage=storage, load_if_exists=True)
    times = []

    def objective(trial: optuna.Trial) -> float:
        loss, took = torchrun(folder, trial.suggest_float("lr", 0.001, 0.1, log=True))
        times.append(took)
        return loss

    study.optimize(objective, n_trials=trials)
    return times


def rival(trials: int) -> float:
    """The same of Optuna, joblib and torchrun."""
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "train.py").write_text(THEIRS)
        begun = time.perf_counter()
        jobs = Parallel(n_jobs=2, pre_dispatch=1)  # of which one has work: a process of its own
        took = [
            each for times in jobs([delayed(some_trials)(Path(name), trials)]) for each in times
        ]
        wall = time.perf_counter() - begun
    assert len(took) == trials
    return wall / trials - float(np.mean(took))


def ray_interpreter() -> str:
    """One that has Ray, which wants other versions of much else."""
    python = INTERPRETER / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", INTERPRETER], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *RAY], check=True)
    return str(python)


def ray_tune(trials: int) -> float:
    """The same of Ray Tune."""
    program = Path(__file__).with_name("ray_study.py")
    command = [ray_interpreter(), str(program), str(trials)]
    ran = subprocess.run(command, input=TRAIN, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"Ray Tune: {ran.stderr[-3000:]}")
    found = json.loads(ran.stdout.splitlines()[-1])
    return float(found["wall"] / trials - np.mean(found["took"]))


def record() -> None:
    """Learning curves of networks whose hyperparameters are drawn at random."""
    from sklearn.datasets import load_digits
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    random, data = np.random.default_rng(0), load_digits()
    x, test_x, y, test_y = train_test_split(data.data / 16, data.target, random_state=0)
    curves = []
    for number in range(NETWORKS):
        model = MLPClassifier(
            (int(random.choice([8, 16, 32, 64])),),
            learning_rate_init=10 ** random.uniform(-4, -1.5),
            alpha=10 ** random.uniform(-6, -1),
            batch_size=int(random.choice([32, 64, 128])),
            random_state=number,
        )
        losses = []
        for _ in range(EPOCHS):
            model.partial_fit(x, y, classes=range(10))
            losses.append(round(float(log_loss(test_y, model.predict_proba(test_x))), 5))
        curves.append(losses)
    CURVES.write_text("[\n" + ",\n".join(map(json.dumps, curves)) + "\n]\n")


def saved(rule: Stopping) -> tuple[float, float]:
    """The part of all steps that a rule saves, trial after trial, and what the best value loses."""
    recorded = json.loads(CURVES.read_text())
    ended: list[np.ndarray] = []
    finals = []
    for losses in recorded:
        curve = np.column_stack([np.arange(len(losses)), losses])
        steps = range(1, len(curve))
        count = next((n for n in steps if reason_to_stop(rule, "min", curve[:n], ended)), None)
        ended.append(curve[:count])
        if count is None:
            finals.append(losses[-1])
    total = sum(map(len, recorded))
    return 1 - sum(map(len, ended)) / total, min(finals) - min(each[-1] for each in recorded)


def main(trials: int) -> None:
    print(describe("torch", "optuna", "scikit-learn"))
    found = {}
    for name, rule in (("median", MedianStopping()), ("decay", DecayCurveStopping())):
        part, lost = saved(rule)
        found[f"steps_saved_{name}"], found[f"best_lost_{name}"] = part, lost
        print(f"{name}: {100 * part:.0f} % of the steps saved, best value worse by {lost:.4f}")
    systems = {"here": ours, "torchrun": rival, "raytune": ray_tune}
    ours(1)  # so that neither pays for the first start of all
    overheads: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(ROUNDS):
        for name, study in systems.items():
            overheads[name].append(study(trials // ROUNDS))
            load = os.getloadavg()[0]
            print(f"{name}: {overheads[name][-1]:.3f} s a trial, load {load:.1f}", flush=True)
    here, *others = (statistics.median(overheads[name]) for name in systems)
    print(f"{here:.3f} s of overhead per trial here, with Optuna and Ray Tune {others}")
    ratios = zip(("torchrun", "raytune"), others, strict=True)
    over = {f"trial_overhead_over_{name}": here / there for name, there in ratios}
    print(json.dumps({name: round(value, 4) for name, value in {**over, **found}.items()}))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 50)
