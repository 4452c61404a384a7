"""A user's file for type checkers: lines that end with `# error` are mistakes, and nothing else is.

`tests/test_types.py` has it checked by mypy and by basedpyright. Nobody runs it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from typing_extensions import assert_type

import distrain_nb
from distrain_nb.run import Results


def train(rate: float, steps: int = 100) -> float:
    return rate * steps


def evaluate() -> dict[str, float]:
    return {"accuracy": 0.9}


# What a function returns is what its run's result is.
run = distrain_nb.submit(evaluate, on="vertex", workers="2*n1-standard-8+2*T4")
assert_type(run, distrain_nb.Run[dict[str, float]])
assert_type(run.result(), dict[str, float])
assert_type(run.wait(timeout=60).result(), dict[str, float])
assert_type(run.future(), Future[dict[str, float]])
mistaken: str = run.result()  # error
distrain_nb.submit(evaluate, workrs=2)  # error
distrain_nb.submit(evaluate, workers=2.5)  # error
distrain_nb.submit(train)  # error
distrain_nb.sumbit(evaluate)  # error


async def awaiting() -> None:
    assert_type(await run, dict[str, float])
    assert_type(await asyncio.wrap_future(run.future()), dict[str, float])


# A cell and a script have results by name.
assert_type(distrain_nb.submit("loss = 1.0", result="loss").result(), Results)
script = distrain_nb.script("train.py", "--lr", 0.1)
assert_type(distrain_nb.submit(script, ranks_per_replica=2).result()["loss"], Any)

# Arguments are those of the function.
with distrain_nb.Executor(on="local", ranks_per_replica=2) as executor:
    assert_type(executor.submit(train, 0.1, steps=10).result(), float)
    assert_type([one.result() for one in executor.map(train, [0.1, 0.01])], list[float])
    executor.submit(train, "fast")  # error
    executor.submit(train, 0.1, stops=10)  # error
distrain_nb.Executor(on=3)  # error


@distrain_nb.remote
def measure(rate: float) -> int:
    return round(rate)


@distrain_nb.remote(on="sagemaker", workers="2*ml.g5.xlarge")
def tell(rate: float) -> str:
    return str(rate)


assert_type(measure(0.1), int)
assert_type(measure.submit(0.1), distrain_nb.Run[int])
assert_type(tell(0.1), str)
assert_type(tell.map([0.1, 0.2]), list[distrain_nb.Run[str]])
distrain_nb.submit(measure)  # error
measure("0.1")  # error
tell.submit()  # error

# A run by its name says nothing of its function.
assert_type(distrain_nb.runs()[0].result(), Any)
assert_type(distrain_nb.attach(3).result(), Any)
distrain_nb.attach().result()  # error
followed = distrain_nb.attach("last")
if isinstance(followed, distrain_nb.Run):
    assert_type(followed.result(), Any)
study = distrain_nb.tune(evaluate, tune=["lr=1e-5..1e-1:log"], goal="min:loss", trials=20)
assert_type(study, distrain_nb.Study)
distrain_nb.log_metrics({"loss": 0.5}, step=1)
