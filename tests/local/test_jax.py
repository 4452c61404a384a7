"""JAX starts by itself: `jax.distributed.initialize()` without arguments, two real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api

if TYPE_CHECKING:
    from pathlib import Path

# A step of Keras on JAX over both processes, from a checkpoint where there is one.
STEP = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax
import numpy as np
from jax.experimental import multihost_utils
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize()
import keras

mesh = jax.sharding.Mesh(jax.devices(), ("data",))
rows = jax.NamedSharding(mesh, jax.P("data"))
x = jax.make_array_from_process_local_data(rows, np.full((2, 3), jax.process_index() + 1.0))
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
model.set_weights([np.ones((3, 1)), np.zeros(1)])
saved = {saved!r}
resumed = os.path.exists(saved)
if resumed:
    model.load_weights(saved)

def loss(kernel, x):
    outputs, _ = model.stateless_call([kernel, *model.trainable_variables[1:]], [], x)
    return (outputs**2).mean()

kernel = np.asarray(model.trainable_variables[0])
gradient = np.asarray(jax.jit(jax.grad(loss), out_shardings=jax.NamedSharding(mesh, jax.P()))(
    kernel, x).addressable_data(0))
model.set_weights([kernel - 0.01 * gradient, np.zeros(1)])
multihost_utils.sync_global_devices("trained")
if jax.process_index() == 0:
    model.save_weights(saved)
world = [jax.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count()]
weight = float(model.get_weights()[0][0, 0])
print(world, round(weight, 4), resumed, flush=True)
"""

# The same with Flax, from a checkpoint that Orbax writes from both processes.
FLAX_STEP = """
import os
import jax
import jax.numpy as jnp
import numpy as np
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize()
import orbax.checkpoint as ocp
from flax import nnx

mesh = jax.sharding.Mesh(jax.devices(), ("data",))
everywhere = jax.NamedSharding(mesh, jax.P())
x = jax.make_array_from_process_local_data(
    jax.NamedSharding(mesh, jax.P("data")), np.full((2, 3), jax.process_index() + 1.0)
)
model = nnx.Linear(3, 1, use_bias=False, kernel_init=nnx.initializers.ones, rngs=nnx.Rngs(0))
graph, state = nnx.split(model)
state = jax.tree.map(
    lambda w: jax.make_array_from_process_local_data(everywhere, np.asarray(w)), state
)
saved = {saved!r}
with ocp.StandardCheckpointer() as checkpoints:
    resumed = os.path.exists(saved + "/step")
    if resumed:
        state = checkpoints.restore(saved + "/step", state)

    @jax.jit
    def step(state, x):
        gradient = jax.grad(lambda s: (nnx.merge(graph, s)(x) ** 2).mean())(state)
        return jax.tree.map(lambda w, g: w - 0.01 * g, state, gradient)

    state = step(state, x)
    checkpoints.save(saved + "/step", state, force=True)
world = [jax.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count()]
print(world, round(float(state["kernel"][...][0, 0]), 4), resumed, flush=True)
"""

WORLD = """
import jax
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize()
print(jax.process_index(), jax.process_count(), len(jax.devices()), flush=True)
"""


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1},
        pytest.param(
            {"ranks_per_replica": 2, "launcher": "torchrun"},
            marks=pytest.mark.stands_for("JAX"),
        ),
        {"ranks_per_replica": 2, "launcher": "mpi"},
    ],
    ids=["two replicas", "torchrun", "mpi"],
)
@pytest.mark.timeout(240)
def test_two_processes_are_one_world(home: Path, options: dict[str, str | int]) -> None:
    run = api.submit(WORLD, wait=True, **options)
    told = sorted(line.text for line in run.lines() if line.text[:1].isdigit())
    assert told == ["0 2 2", "1 2 2"]
    assert not run.status.note


@pytest.mark.parametrize(
    ("code", "file"),
    [(STEP, "model.weights.h5"), pytest.param(FLAX_STEP, "", marks=pytest.mark.slow)],
    ids=["Keras", "Flax, Orbax"],
)
@pytest.mark.timeout(240)
def test_a_model_on_jax_resumes_from_its_checkpoint(
    home: Path, tmp_path: Path, code: str, file: str
) -> None:
    step = code.replace("{saved!r}", repr(str(tmp_path / file)))
    ends = []
    for _ in range(2):
        run = api.submit(step, wait=True, workers=1)
        ends.append(
            sorted(
                line.text for line in run.lines() if "]" in line.text and line.text[1:2].isdigit()
            )
        )
    # The mean over both: outputs of 3 and 6 have the gradients 2·3·1 and 2·6·2 by each weight.
    assert ends[0] == ["[0, 2, 1, 2] 0.85 False", "[1, 2, 1, 2] 0.85 False"]
    assert ends[1] == ["[0, 2, 1, 2] 0.7225 True", "[1, 2, 1, 2] 0.7225 True"]


CHOICE = """
import os, sys
from distrain_nb.worker.machine import gpus
from distrain_nb.worker.rank import jax_cluster

class FourGpus(gpus.Gpus):
    @classmethod
    def open(cls, name=""):
        return cls(None, 4)

jax_cluster.Gpus = FourGpus
os.environ.update({place!r})
jax_cluster.change_jax()
from jax._src import clusters
for given in {cases!r}:
    before = dict(os.environ)
    os.environ.update(given)
    jax_cluster._share_gpus()
    print(
        *clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, 9),
        os.environ.get("JAX_LOCAL_DEVICE_IDS"),
    )
    os.environ.clear()
    os.environ.update(before)
"""
ALONE = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
CASES = (
    (ALONE, "host:7 4 3 None None"),
    ({"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"}, "host:7 4 3 [3] None"),
    ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, "host:7 4 3 [1] 2,3"),
    ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": "0,1"},
     "host:7 4 3 [1] None"),
    # as many as there are ranks on one: JAX would look for a GPU of the rank's number
    ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": "2"},
     "host:7 4 3 [1] 0"),
    ({**ALONE, "JAX_COORDINATOR_PORT": "9"}, "host:9 4 3 None None"),
    # Open MPI's own class would name a port of its own
    ({**ALONE, "OMPI_MCA_orte_hnp_uri": "1;tcp://10.0.0.1:1"}, "host:7 4 3 None None"),
)  # fmt: skip


def test_which_devices_a_process_gets() -> None:
    """One process of a machine has all its devices, several share them. The GPUs are made up."""
    place = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "host", "MASTER_PORT": "7", **ALONE}
    code = CHOICE.format(place=place, cases=[given for given, _ in CASES])
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [found for _, found in CASES]
