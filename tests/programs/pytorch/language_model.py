"""A small GPT with its config, a character data set and checkpointed activations.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import math
import os
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

# %%
# config, as a script that is read before its own lines
batch_size = 4
block_size = 16
gradient_accumulation_steps = 4
max_iters = 3
learning_rate = 1e-2
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, float)]

# %%
text = "the quick brown fox jumps over the lazy dog " * 8
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
train_data = np.array([stoi[ch] for ch in text], dtype=np.uint16)


def get_batch(generator):
    ix = torch.randint(len(train_data) - block_size, (batch_size,), generator=generator)
    x = torch.stack([torch.from_numpy(train_data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack(
        [torch.from_numpy(train_data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix]
    )
    return x, y


# %%
@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 64
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (
            part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for part in self.c_attn(x).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=False)
        logits = self.lm_head(x)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


# %%
ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="gloo")
    ddp_rank = int(os.environ["RANK"])
    ddp_world_size = int(os.environ["WORLD_SIZE"])
    assert gradient_accumulation_steps % ddp_world_size == 0
    micro_steps = gradient_accumulation_steps // ddp_world_size
    master_process = ddp_rank == 0
else:
    ddp_rank, ddp_world_size, master_process = 0, 1, True
    micro_steps = gradient_accumulation_steps
torch.manual_seed(1337)
model_args = asdict(GPTConfig(block_size=block_size, vocab_size=len(chars)))
model = GPT(GPTConfig(**model_args))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
if ddp:
    model = DDP(model)
raw_model = model.module if ddp else model
generator = torch.Generator().manual_seed(1337 + ddp_rank)
for iter_num in range(max_iters):
    lr = learning_rate * (0.5 * (1.0 + math.cos(math.pi * iter_num / max_iters)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    for micro_step in range(micro_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == micro_steps - 1
        with nullcontext():
            loss = model(*get_batch(generator)) / micro_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
print("RESULT", json.dumps([ddp_rank, ddp_world_size, loss.item(), config_keys]))
if ddp:
    dist.barrier()
    destroy_process_group()
