"""Programs of the frameworks that run unchanged here and on clusters, by name, with the options
they need and what their result has to be. None takes more than a CPU of a node."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.tensorflow_cells import COORDINATE


class Example(NamedTuple):
    code: str
    options: dict[str, Any]
    result: float


MIRRORED = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])

@tf.function
def step():
    def one(): return tf.distribute.get_replica_context().all_reduce("sum", tf.ones(()))
    return strategy.run(one)

total = float(step())
"""
SERVERS = (
    """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc", start=True).join()
else:
"""
    + COORDINATE
)
JAX = """
import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize()
ones = multihost_utils.process_allgather(jnp.ones(1) + jax.process_index())
total = float(ones.sum())
"""
REDUCED = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1, bias=False))
model(torch.full((1, 64), 1.0 + dist.get_rank())).sum().backward()
total = model.module.weight.grad[0, 0].item()
"""
EXAMPLES = {
    "mirrored": Example(MIRRORED, {"workers": 2}, 2.0),
    "servers": Example(SERVERS, {"workers": 2, "servers": 1}, 20.0),
    "jax": Example(JAX, {"workers": 2}, 3.0),
    "reduced": Example(REDUCED, {"workers": 2, "reducers": 1}, 1.5),
}
