"""Reinforcement learning over RPC: an agent that asks observers to play, and learns.

%%distrain -n 3
torchrun --nproc-per-node 3
"""

import json
import os
from collections import namedtuple

import torch
import torch.distributed.rpc as rpc
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributed.rpc import RRef, remote, rpc_async, rpc_sync
from torch.distributions import Categorical

# %%
AGENT_NAME = "agent"
OBSERVER_NAME = "observer{}"
GAMMA = 0.9
Step = namedtuple("Step", "log_prob reward")


class Corridor:
    """Walk right to be rewarded."""

    def reset(self):
        self.place = 0
        return torch.tensor([0.0])

    def step(self, action):
        self.place += 1 if action else -1
        return torch.tensor([float(self.place)]), float(self.place)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(1, 8)
        self.affine2 = nn.Linear(8, 2)

    def forward(self, x):
        return F.softmax(self.affine2(torch.tanh(self.affine1(x))), dim=-1)


# %%
def _call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def _remote_method(method, rref, *args, **kwargs):
    return rpc_sync(rref.owner(), _call_method, args=[method, rref, *args], kwargs=kwargs)


class Observer:
    def __init__(self):
        self.id = rpc.get_worker_info().id
        self.env = Corridor()

    def run_episode(self, agent_rref, n_steps):
        state = self.env.reset()
        for _ in range(n_steps):
            action = _remote_method(Agent.select_action, agent_rref, self.id, state)
            state, reward = self.env.step(action)
            _remote_method(Agent.report_reward, agent_rref, self.id, reward)


class Agent:
    def __init__(self, world_size):
        torch.manual_seed(543)
        self.ob_rrefs = []
        self.agent_rref = RRef(self)
        self.policy = Policy()
        self.optimizer = optim.Adam(self.policy.parameters(), lr=1e-2)
        self.saved, self.rewards = {}, {}
        for ob_rank in range(1, world_size):
            ob_info = rpc.get_worker_info(OBSERVER_NAME.format(ob_rank))
            self.ob_rrefs.append(remote(ob_info, Observer))
            self.saved[ob_info.id], self.rewards[ob_info.id] = [], []

    def select_action(self, ob_id, state):
        generator_seed = ob_id * 1000 + len(self.saved[ob_id])  # whoever asks first
        torch.manual_seed(generator_seed)
        distribution = Categorical(self.policy(state))
        action = distribution.sample()
        self.saved[ob_id].append(distribution.log_prob(action))
        return action.item()

    def report_reward(self, ob_id, reward):
        self.rewards[ob_id].append(reward)

    def run_episode(self, n_steps):
        futures = [
            rpc_async(
                ob_rref.owner(),
                _call_method,
                args=(Observer.run_episode, ob_rref, self.agent_rref, n_steps),
            )
            for ob_rref in self.ob_rrefs
        ]
        for future in futures:
            future.wait()

    def finish_episode(self):
        losses = []
        for ob_id in sorted(self.saved):
            total = 0.0
            steps = map(Step, self.saved[ob_id], self.rewards[ob_id])
            for step in reversed(list(steps)):
                total = step.reward + GAMMA * total
                losses.append(-step.log_prob * total)
            self.saved[ob_id], self.rewards[ob_id] = [], []
        self.optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        self.optimizer.step()


# %%
def run_worker(rank, world_size):
    found = []
    if rank == 0:
        rpc.init_rpc(AGENT_NAME, rank=rank, world_size=world_size)
        agent = Agent(world_size)
        for _ in range(2):
            agent.run_episode(n_steps=5)
            agent.finish_episode()
        found = [p.sum().item() for p in agent.policy.parameters()]
    else:
        rpc.init_rpc(OBSERVER_NAME.format(rank), rank=rank, world_size=world_size)
    rpc.shutdown()
    print("RESULT", json.dumps([rank, found]))


if __name__ == "__main__":
    run_worker(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
