"""A forked rank draws what a new process would: as many numbers, and none that another draws."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FORK = """
import json, logging, multiprocessing, os, random, secrets, sys, tempfile, threading, uuid
import numpy
if "torch" in sys.argv:
    import torch
from distrain_nb.worker.rank import renewing

def drawn():
    here = {
        "random": random.random(),
        "numpy": float(numpy.random.rand()),
        "numpy's generators": float(numpy.random.default_rng().random()),
        "a file's name": next(tempfile._get_candidate_names()),
        "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()), "secrets": secrets.token_hex(),
        "authkey": multiprocessing.current_process().authkey.hex(),
        "log's clock": logging._startTime,
        "main thread": threading.main_thread().native_id,
    }
    random.seed(1), numpy.random.seed(1)
    seeded = [random.random(), float(numpy.random.rand())]
    if "torch" in sys.argv:
        here["torch"] = torch.rand(4).tolist()
        here["torch's seed"] = torch.initial_seed()
        here["workers of a DataLoader"] = torch.empty((), dtype=torch.int64).random_().item()
        here["a shuffled order"] = torch.randperm(50).tolist()
        torch.manual_seed(1)
        seeded += torch.rand(2).tolist()
    os.environ["TMPDIR"] = "/dev/shm"
    return here, seeded, tempfile.gettempdir()

tempfile.gettempdir()
for _ in range(3):
    if not os.fork():
        renewing.renew()
        print(json.dumps(drawn()), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("imported", ["numpy", pytest.param("torch", marks=pytest.mark.slow)])
def test_forked_ranks_draw_nothing_alike_until_a_seed_is_set(imported: str) -> None:
    command = [sys.executable, "-c", FORK, imported]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ranks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ranks) == 3
    for what in ranks[0][0]:
        assert len({json.dumps(own[what]) for own, _, _ in ranks}) == 3, what
    assert ranks[0][1] == ranks[1][1] == ranks[2][1], "a seed is a seed"
    assert {folder for _, _, folder in ranks} == {"/dev/shm"}, "the program's own TMPDIR"
