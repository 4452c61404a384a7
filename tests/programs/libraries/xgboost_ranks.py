"""XGBoost: each rank trains on its rows, with a tracker of its own.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os

import numpy as np
import xgboost as xgb
from xgboost.tracker import RabitTracker

# %%
params = {"max_depth": 2, "eta": 0.5, "objective": "reg:squarederror", "nthread": 1}


def rows(rank, world):
    x = np.random.default_rng(0).normal(size=(64, 3))
    return x[rank::world], (x[:, 0] * 2 + x[:, 1])[rank::world]


# %%
def main():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    told = [None]
    if rank == 0:
        tracker = RabitTracker(n_workers=world, host_ip="127.0.0.1")
        tracker.start()
        told = [tracker.worker_args()]
    dist.broadcast_object_list(told, src=0)
    with xgb.collective.CommunicatorContext(**told[0]):
        x, y = rows(rank, world)
        seen = {}
        xgb.train(
            params,
            data := xgb.DMatrix(x, y),
            num_boost_round=3,
            evals=[(data, "train")],
            evals_result=seen,
            verbose_eval=False,
        )
    dist.barrier()  # the tracker ends with rank 0
    print("RESULT", json.dumps([rank, seen["train"]["rmse"], bool(os.environ["MASTER_PORT"])]))
    dist.destroy_process_group()


main()
