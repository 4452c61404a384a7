"""transformers without its Trainer: DDP, get_scheduler, a collator, generation on rank 0.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import GPT2Config, GPT2LMHeadModel, default_data_collator, get_scheduler

# %%
config = GPT2Config(
    vocab_size=32,
    n_positions=16,
    n_embd=16,
    n_layer=1,
    n_head=2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=31,
    pad_token_id=31,
)
num_train_epochs = 1
sequences = [[(start + n) % 30 for n in range(8)] for start in range(24)]
train_dataset = [{"input_ids": ids, "labels": ids} for ids in sequences]

# %%
dist.init_process_group("gloo")
local_rank = int(os.environ["LOCAL_RANK"])
torch.manual_seed(0)
model = DistributedDataParallel(GPT2LMHeadModel(config))
sampler = DistributedSampler(train_dataset, shuffle=True, seed=1)
train_dataloader = DataLoader(
    train_dataset,
    sampler=sampler,
    collate_fn=default_data_collator,
    batch_size=4,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-2)
lr_scheduler = get_scheduler(
    "linear",
    optimizer=optimizer,
    num_warmup_steps=1,
    num_training_steps=num_train_epochs * len(train_dataloader),
)
for epoch in range(num_train_epochs):
    sampler.set_epoch(epoch)
    model.train()
    for batch in train_dataloader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
model.eval()
with torch.no_grad():
    logits = model.module(input_ids=torch.arange(8)[None]).logits
print("RESULT", json.dumps([local_rank, loss.item(), logits[0, -1, :4].tolist()]))
dist.destroy_process_group()
