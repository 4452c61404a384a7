"""Training programs that do all that their framework asks, and what to take out of each.

A change is the text to take out, what takes its place, and the code of the finding that follows.
"""

from __future__ import annotations

HOROVOD_TORCH = """\
import torch
import horovod.torch as hvd

hvd.init()
torch.cuda.set_device(hvd.local_rank())
model = torch.nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
    if hvd.rank() == 0:
        torch.save(model.state_dict(), "model.pt")
"""
HOROVOD_TORCH_CHANGES = [
    ("hvd.init()", "pass", "horovod.init"),
    ("torch.cuda.set_device(hvd.local_rank())", "pass", "horovod.device"),
    ("0.01 * hvd.size()", "0.01", "horovod.learning-rate"),
    (
        "optimizer = hvd.DistributedOptimizer("
        "optimizer, named_parameters=model.named_parameters())",
        "pass",
        "horovod.optimizer",
    ),
    (
        "hvd.broadcast_parameters(model.state_dict(), root_rank=0)\n"
        "hvd.broadcast_optimizer_state(optimizer, root_rank=0)\n",
        "\n\n",
        "horovod.broadcast",
    ),
    ("hvd.broadcast_optimizer_state(optimizer, root_rank=0)", "pass", "horovod.broadcast"),
    ("if hvd.rank() == 0:", "if epoch == 2:", "horovod.checkpoint"),
]

HOROVOD_KERAS = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
scaled = 0.001 * hvd.size()
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(scaled))
model.compile(optimizer=optimizer, loss="mse")
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("model-{epoch}.keras"))
model.fit(dataset, callbacks=callbacks, verbose=1 if hvd.rank() == 0 else 0)
"""
HOROVOD_KERAS_CHANGES = [
    ("hvd.init()", "pass", "horovod.init"),
    ('tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")', "pass", "horovod.device"),
    ("0.001 * hvd.size()", "0.001", "horovod.learning-rate"),
    ("hvd.DistributedOptimizer(tf.keras.optimizers.Adam(scaled))",
     "tf.keras.optimizers.Adam(scaled)", "horovod.optimizer"),
    ("[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]", "[]", "horovod.broadcast"),
    ("if hvd.rank() == 0:", "if True:", "horovod.checkpoint"),
]  # fmt: skip

HOROVOD_TF1 = """\
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
optimizer = tf.train.AdagradOptimizer(0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer)
train = optimizer.minimize(loss)
hooks = [hvd.BroadcastGlobalVariablesHook(0)]
checkpoint_dir = "/tmp/train" if hvd.rank() == 0 else None
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=checkpoint_dir, config=config, hooks=hooks
) as session:
    while not session.should_stop():
        session.run(train)
"""
HOROVOD_TF1_CHANGES = [
    ("hvd.init()", "pass", "horovod.init"),
    ("config.gpu_options.visible_device_list = str(hvd.local_rank())", "pass", "horovod.device"),
    ("0.01 * hvd.size()", "0.01", "horovod.learning-rate"),
    ("optimizer = hvd.DistributedOptimizer(optimizer)", "pass", "horovod.optimizer"),
    ("[hvd.BroadcastGlobalVariablesHook(0)]", "[]", "horovod.broadcast"),
    (' if hvd.rank() == 0 else None', "", "horovod.checkpoint"),
]  # fmt: skip

HOROVOD_TF2 = """\
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
model = build()
optimizer = tf.optimizers.Adam(0.001 * hvd.size())
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)

@tf.function
def step(images, labels, first):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    if first:
        hvd.broadcast_variables(model.variables, root_rank=0)
    return loss

for batch, (images, labels) in enumerate(dataset.take(10000 // hvd.size())):
    step(images, labels, batch == 0)
if hvd.rank() == 0:
    checkpoint.save("checkpoints")
"""
HOROVOD_TF2_CHANGES = [
    ("0.001 * hvd.size()", "0.001", "horovod.learning-rate"),
    ("hvd.DistributedGradientTape(tape)", "tape", "horovod.optimizer"),
    ("hvd.broadcast_variables(model.variables, root_rank=0)", "pass", "horovod.broadcast"),
    ("if hvd.rank() == 0:", "if True:", "horovod.checkpoint"),
]  # fmt: skip

DDP = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DDP(torch.nn.Linear(4, 2).cuda(), device_ids=[local_rank])
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=32, sampler=sampler)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
"""
DDP_CHANGES = [
    ('int(os.environ["LOCAL_RANK"])\n', "0\n", ""),  # the name says what it is
    ("sampler = DistributedSampler(train_set)\nloader = DataLoader(train_set, batch_size=32, "
     "sampler=sampler)\n",
     "sampler = Sampler()\nloader = DataLoader(train_set, batch_size=32, shuffle=True)\n",
     "ddp.sampler"),
    ("sampler.set_epoch(epoch)", "pass", "ddp.set-epoch"),
    ("DataLoader(train_set, batch_size=32, sampler=sampler)",
     "DataLoader(datasets.load_dataset('c4'))", "ddp.iterable"),
    ("if dist.get_rank() == 0:", "if loss < 1:", "ddp.checkpoint"),
]  # fmt: skip

FSDP = """\
import os
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

def main():
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    model = FullyShardedDataParallel(Net().to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in batches(rank):
        loss_of(model(x), y).backward()
        optimizer.step()
    state = model.state_dict()
    if rank == 0:
        torch.save(state, "model.pt")

main()
"""
FSDP_CHANGES = [
    ("    state = model.state_dict()\n    if rank == 0:\n        torch.save(state,",
     "    if rank == 0:\n        torch.save(model.state_dict(),", "fsdp.state-dict"),
    ("    if rank == 0:\n        torch", "    if x is not None:\n        torch", "ddp.checkpoint"),
    ("    state = model.state_dict()\n    if rank == 0:\n        torch.save(state,",
     "    torch.save(model.state_dict(),", "fsdp.state-dict"),
    ("    model = FullyShardedDataParallel(Net().to(device))\n"
     "    optimizer = torch.optim.AdamW(model.parameters())\n",
     "    model = Net().to(device)\n    optimizer = torch.optim.AdamW(model.parameters())\n"
     "    model = FullyShardedDataParallel(model)\n", "fsdp.optimizer"),
]  # fmt: skip

STRATEGY = """\
import tensorflow as tf
import tf_keras as keras

strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = dataset.batch(64 * strategy.num_replicas_in_sync)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer=keras.optimizers.Adam(), loss="mse")
model.fit(data, epochs=3)
"""
STRATEGY_CHANGES = [
    ("import tf_keras as keras", "import keras", "tensorflow.keras-3"),
    ("with strategy.scope():", "if True:", "tensorflow.scope"),
    ("strategy.num_replicas_in_sync", "len(tf_config['cluster']['worker'])", "tensorflow.chief"),
]

ALONE = """\
import torch
from transformers import AutoModel

model = torch.nn.Sequential(AutoModel.from_pretrained("gpt2"), torch.nn.Linear(768, 2)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x, y in batches:
    loss_of(model(x), y).backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
ALONE_CHANGES = [
    ("optimizer =", "model = torch.nn.DataParallel(model)\noptimizer =", "one-process"),
    ('"gpt2")', '"gpt2", device_map="auto")', "one-process"),
    (").cuda()", ').to("cuda:0")\nhead = torch.nn.Linear(2, 1).to("cuda:1")', "one-process"),
]

STORAGE = """\
import webdataset as wds
from torch.utils.data import DataLoader

data = wds.WebDataset("/gcs/b/train/{000..099}.tar").decode("torchrgb")
loader = DataLoader(data.batched(64), batch_size=None, num_workers=4)
"""
STORAGE_CHANGES = [
    ('data = wds.WebDataset("/gcs/b/train/{000..099}.tar").decode("torchrgb")',
     'data = ImageFolder("/gcs/b/train")', "data.small-files"),
]  # fmt: skip

COMPLETE = {
    "horovod torch": (HOROVOD_TORCH, HOROVOD_TORCH_CHANGES),
    "horovod keras": (HOROVOD_KERAS, HOROVOD_KERAS_CHANGES),
    "horovod tf1": (HOROVOD_TF1, HOROVOD_TF1_CHANGES),
    "horovod tf2": (HOROVOD_TF2, HOROVOD_TF2_CHANGES),
    "ddp": (DDP, DDP_CHANGES),
    "fsdp": (FSDP, FSDP_CHANGES),
    "alone": (ALONE, ALONE_CHANGES),
    "strategy": (STRATEGY, STRATEGY_CHANGES),
    "storage": (STORAGE, STORAGE_CHANGES),
}
