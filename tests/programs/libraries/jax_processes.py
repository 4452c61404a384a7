"""JAX: two processes, an array over both, its sum.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os
import socket
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


# %%
def coordinator_port():
    """A port that rank 0 has found free, told to the others by a file."""
    told = Path(tempfile.gettempdir(), f"programs-jax-{os.environ['MASTER_PORT']}")
    if os.environ["RANK"] == "0":
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            draft = told.with_suffix(".draft")
            draft.write_text(str(found.getsockname()[1]))
        draft.replace(told)
    while not told.exists():
        time.sleep(0.05)
    return int(told.read_text())


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


# %%
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    f"127.0.0.1:{coordinator_port()}", int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
)
mesh = jax.sharding.Mesh(jax.devices(), ("data",))
sharding = jax.NamedSharding(mesh, jax.P("data"))
local = np.full((2, 3), float(jax.process_index() + 1), dtype=np.float32)
x = jax.make_array_from_process_local_data(sharding, local)
value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.ones(3), x)
print(
    "RESULT",
    json.dumps([jax.process_index(), jax.process_count(), float(value), gradient.tolist()]),
)
Path(tempfile.gettempdir(), f"programs-jax-{os.environ['MASTER_PORT']}").unlink(missing_ok=True)
jax.distributed.shutdown()
