"""LightGBM: data-parallel training over sockets, a machine list of both ranks.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os
import socket

import lightgbm as lgb
import numpy as np
import torch.distributed as dist

# %%
params = {
    "objective": "regression",
    "tree_learner": "data",
    "num_leaves": 4,
    "min_data_in_leaf": 5,
    "num_threads": 1,
    "verbosity": -1,
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# %%
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
ports = [None] * world
port = free_port()
dist.all_gather_object(ports, port)
x = np.random.default_rng(0).normal(size=(80, 3))
y = x[:, 0] * 3 - x[:, 2]
booster = lgb.train(
    {
        **params,
        "num_machines": world,
        "machines": ",".join(f"127.0.0.1:{p}" for p in ports),
        "local_listen_port": port,
        "pre_partition": True,
    },
    lgb.Dataset(x[rank::world], y[rank::world]),
    num_boost_round=3,
)
print("RESULT", json.dumps([rank, booster.predict(x[:3]).tolist(), len(os.environ["RANK"])]))
dist.destroy_process_group()
