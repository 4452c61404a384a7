"""A parameter server that batches updates: RPC with an asynchronous execution.

%%distrain -n 3
torchrun --nproc-per-node 3
"""

import json
import os
import threading

import torch
import torch.distributed.rpc as rpc
from torch import nn

# %%
batch_update_size = 2
num_steps = 3


class BatchUpdateParameterServer:
    def __init__(self, batch_update_size=batch_update_size):
        torch.manual_seed(0)
        self.model = nn.Linear(3, 1)
        self.lock = threading.Lock()
        self.future_model = torch.futures.Future()
        self.batch_update_size = batch_update_size
        self.curr_update_size = 0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def get_model(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def update_and_fetch_model(ps_rref, grads):
        self = ps_rref.local_value()
        with self.lock:
            self.curr_update_size += 1
            for p, g in zip(self.model.parameters(), grads, strict=True):
                p.grad += g
            fut = self.future_model
            if self.curr_update_size >= self.batch_update_size:
                for p in self.model.parameters():
                    p.grad /= self.batch_update_size
                self.curr_update_size = 0
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                fut.set_result(self.model)
                self.future_model = torch.futures.Future()
        return fut


# %%
class Trainer:
    def __init__(self, ps_rref):
        self.ps_rref = ps_rref
        self.rank = rpc.get_worker_info().id
        self.loss_fn = nn.MSELoss()

    def batches(self):
        generator = torch.Generator().manual_seed(self.rank)
        for _ in range(num_steps):
            x = torch.randn(8, 3, generator=generator)
            yield x, x.sum(dim=1, keepdim=True)

    def train(self):
        model = self.ps_rref.rpc_sync().get_model()
        for inputs, labels in self.batches():
            loss = self.loss_fn(model(inputs), labels)
            model.zero_grad()
            loss.backward()
            model = rpc.rpc_sync(
                self.ps_rref.owner(),
                BatchUpdateParameterServer.update_and_fetch_model,
                args=(self.ps_rref, [p.grad for p in model.parameters()]),
            )
        return loss.item()


def run_trainer(ps_rref):
    return Trainer(ps_rref).train()


def run_ps(trainers):
    ps_rref = rpc.RRef(BatchUpdateParameterServer())
    futs = [rpc.rpc_async(trainer, run_trainer, args=(ps_rref,)) for trainer in trainers]
    losses = torch.futures.wait_all(futs)
    return [losses, [p.sum().item() for p in ps_rref.local_value().model.parameters()]]


# %%
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=120)
name = "ps" if rank == 0 else f"trainer{rank}"
rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
found = run_ps([f"trainer{r}" for r in range(1, world_size)]) if rank == 0 else []
rpc.shutdown()
print("RESULT", json.dumps([rank, found]))
