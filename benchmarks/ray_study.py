"""A study by Ray Tune, whose trials are jobs of two workers: `python ray_study.py TRIALS`.

What a worker does with `lr` comes by stdin; it leaves `loss` and `took` behind. As Ray's guide has
it, a trial is a driver that runs Ray Train's TorchTrainer, and a callback hands on what the workers
report. Optuna suggests, as for the others. The last line is JSON: the seconds of the study, the
cluster's start not included, and of each training.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any

os.environ.update(RAY_TRAIN_V2_ENABLED="1", RAY_USAGE_STATS_ENABLED="0")

import ray
import ray.train
import ray.train.torch
from ray import tune
from ray.tune.integration.ray_train import TuneReportCallback
from ray.tune.search.optuna import OptunaSearch


def train(given: dict[str, Any]) -> None:
    """What each of the two workers does."""
    names = {"lr": given["lr"]}
    exec(given["code"], names)
    ray.train.report({"loss": names["loss"].item(), "took": names["took"]})


def trial(given: dict[str, Any]) -> None:
    """A job of two workers."""
    ray.train.torch.TorchTrainer(
        train,
        train_loop_config=given,
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            name=tune.get_context().get_trial_id(),
            storage_path=given["folder"],
            callbacks=[TuneReportCallback()],
        ),
    ).fit()


def study(code: str, trials: int, folder: str) -> list[float]:
    """The seconds that each trial has trained."""
    tuner = tune.Tuner(
        trial,
        param_space={"lr": tune.loguniform(0.001, 0.1), "code": code, "folder": f"{folder}/jobs"},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=trials,
            max_concurrent_trials=1,
            search_alg=OptunaSearch(),
        ),
        run_config=tune.RunConfig(storage_path=f"{folder}/study"),
    )
    return [result.metrics["took"] for result in tuner.fit() if not result.error]


def main() -> None:
    trials, code = int(sys.argv[1]), sys.stdin.read()
    with tempfile.TemporaryDirectory() as folder:
        # A CPU for the driver of a trial and one for each worker; a store that they don't need.
        ray.init(num_cpus=3, object_store_memory=200_000_000, include_dashboard=False)
        begun = time.perf_counter()
        took = study(code, trials, folder)
        wall = time.perf_counter() - begun
        ray.shutdown()
    if len(took) != trials:
        sys.exit(f"of {trials} trials {len(took)} have ended well")
    print(json.dumps({"wall": wall, "took": took}))


if __name__ == "__main__":
    main()
