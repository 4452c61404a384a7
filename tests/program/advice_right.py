"""Programs that are right in ways of their own: no advice is due."""

EARLY_RETURN = """\
import torch, horovod.torch as hvd
hvd.init()
def save(model, path):
    if hvd.rank() != 0:
        return
    torch.save(model.state_dict(), path)
def scaled(rate, workers):
    return rate * workers
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), scaled(0.1, hvd.size()), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer)
hvd.broadcast_parameters(model.state_dict(), 0)
hvd.broadcast_optimizer_state(optimizer, 0)
model(torch.rand(1, 2)).sum().backward()
optimizer.step()
save(model, "model.pt")
"""

HELPERS = """\
import torch
from horovod import torch as hvd
def is_first():
    return hvd.rank() == 0
def setup():
    hvd.init()
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
        return torch.device("cuda")
    return torch.device("cpu")
def start(model, optimizer):
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
def train(args):
    device = setup()
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for group in optimizer.param_groups:
        group["lr"] *= hvd.size()
    optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Average)
    start(model, optimizer)
    model(x).sum().backward()
    first = is_first()
    first and torch.save(model.state_dict(), args.path)
train(args)
"""

OWN_FILE_PER_RANK = """\
import torch, horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size()))
hvd.broadcast_object(model.state_dict(), root_rank=0)
torch.save(model.state_dict(), f"model-{hvd.rank()}.pt")
"""

NONE_FOR_THE_OTHERS = """\
import tensorflow.compat.v1 as tf
import horovod.tensorflow as hvd
hvd.init()
options = tf.GPUOptions(visible_device_list=str(hvd.local_rank()))
config = tf.ConfigProto(gpu_options=options)
checkpoint_dir = "/tmp/train"
if hvd.rank() != 0:
    checkpoint_dir = None
optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(learning_rate=0.001 * hvd.size()))
train = optimizer.minimize(loss)
with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, config=config) as session:
    session.run(hvd.broadcast_global_variables(0))
"""

ESTIMATOR = """\
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
def model_fn(features, labels, mode):
    optimizer = tf.train.MomentumOptimizer(learning_rate=0.001 * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer)
    return tf.estimator.EstimatorSpec(mode, train_op=optimizer.minimize(loss))
model_dir = "./model" if hvd.rank() == 0 else None
classifier = tf.estimator.Estimator(
    model_fn=model_fn, model_dir=model_dir,
    config=tf.estimator.RunConfig(session_config=config))
classifier.train(input_fn=read, steps=100, hooks=[hvd.BroadcastGlobalVariablesHook(0)])
"""

ONLY_WHERE_MPI_RUNS = """\
import tensorflow as tf
use_mpi = True
if use_mpi:
    import horovod.keras as hvd
    hvd.init()
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    size = hvd.size()
else:
    size = 1
optimizer = tf.keras.optimizers.SGD(lr=0.01 * size)
callbacks = []
if use_mpi:
    optimizer = hvd.DistributedOptimizer(optimizer)
    callbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(0))
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.ModelCheckpoint("/opt/ml/checkpoint.h5"))
model.compile(loss="mse", optimizer=optimizer)
model.fit(x, y, callbacks=callbacks)
"""

WARMUP = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
tf.config.set_visible_devices([], "GPU")
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1))
model.compile(optimizer=optimizer)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.1 * hvd.size(), warmup_epochs=3),
    *([tf.keras.callbacks.ModelCheckpoint("a.h5")] if hvd.rank() == 0 else []),
]
model.fit(data, callbacks=callbacks)
"""

NO_TRAINING = """\
import horovod.torch as hvd
hvd.init()
print(hvd.rank(), hvd.allreduce(value))
"""

SPAWN = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
def run(local_rank, world_size):
    dist.init_process_group("nccl", rank=local_rank, world_size=world_size)
    model = DDP(Net().to(local_rank), device_ids=[local_rank])
    model(x).backward()
    if local_rank == 0:
        torch.save(model.state_dict(), "model.pt")
mp.spawn(run, args=(4,), nprocs=4)
"""

RANK_MODULO_GPUS = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group(backend="nccl")
rank = dist.get_rank()
device = rank % torch.cuda.device_count()
model = DistributedDataParallel(Net().to(device), device_ids=[device])
for epoch in range(3):
    for x in torch.arange(100)[rank::dist.get_world_size()]:
        model(x).backward()
if not rank:
    torch.save(model.state_dict(), "model.pt")
"""

ON_THE_CPU = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(2, 1))
part = Subset(data, range(rank, len(data), world_size))
for x, y in DataLoader(part, batch_size=8, shuffle=True):
    model(x).sum().backward()
dist.barrier()
"""

SHARED_BY_THE_DATASET = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset
class Lines(IterableDataset):
    def __iter__(self):
        for number, line in enumerate(open("lines")):
            if number % dist.get_world_size() == dist.get_rank():
                yield line
dist.init_process_group("gloo")
model = DistributedDataParallel(Net())
for x in DataLoader(Lines(), batch_size=8):
    model(x).sum().backward()
"""

SAVED_TOGETHER = """\
import torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
dist.init_process_group()
model = Net()
fully_shard(model)
model(x).sum().backward()
dcp.save({"model": model.state_dict()}, checkpoint_id="checkpoint")
"""

ACCELERATE = """\
import torch
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(Net())
torch.save(model, "x")
"""

PICTURES = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(2, 1))
picture.save(f"sample.png")
"""

STRATEGY_IN_HELPERS = """\
import tensorflow as tf
def make_strategy():
    if tf.config.list_physical_devices("GPU"):
        return tf.distribute.MirroredStrategy()
    return tf.distribute.OneDeviceStrategy("/cpu:0")
def build():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model
strategy = make_strategy()
batch = 32 * strategy.num_replicas_in_sync
with strategy.scope():
    model = build()
model.fit(x, y, batch_size=batch)
"""

STRATEGY_OR_ANOTHER = """\
import tensorflow as tf
try:
    strategy = tf.distribute.TPUStrategy(resolver)
except ValueError:
    strategy = tf.distribute.MirroredStrategy()
class Net(tf.keras.Model):
    pass
with strategy.scope():
    model = Net()
    optimizer = tf.keras.optimizers.Adam(0.1)
data = strategy.experimental_distribute_dataset(data.batch(8 * strategy.num_replicas_in_sync))
"""

TRAINER_CLASS = """\
import torch
import torch.multiprocessing as mp
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
class Trainer:
    def __init__(self, model, gpu_id):
        self.gpu_id = gpu_id
        self.model = DDP(model.to(gpu_id), device_ids=[gpu_id])
    def train(self, epochs):
        for epoch in range(epochs):
            if self.gpu_id == 0:
                self.keep(epoch)
    def keep(self, epoch):
        torch.save(self.model.module.state_dict(), "checkpoint.pt")
def main(rank, world_size):
    init_process_group("nccl", rank=rank, world_size=world_size)
    Trainer(torch.nn.Linear(2, 1), rank).train(3)
mp.spawn(main, args=(2,), nprocs=2)
"""

STARTED_BY_AN_IMPORT = """\
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from project import setup_ddp, train_epoch
setup_ddp()
model = DistributedDataParallel(torch.nn.Linear(2, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, sampler=sampler)
for epoch in range(3):
    train_epoch(model, loader, sampler, epoch)
"""

ONLY_DEFINITIONS = """\
from torch.nn.parallel import DistributedDataParallel
class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
"""

LIGHTNING = """\
import torch, horovod.torch as hvd
from pytorch_lightning import Trainer, callbacks
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
keeps = callbacks.ModelCheckpoint("folder")
Trainer(strategy="horovod", callbacks=[keeps]).fit(model)
"""

LAUNCHED_FROM_HERE = """\
import horovod
from horovod.tensorflow.data.compute_service import TfDataServiceConfig
horovod.run(train, np=2)
"""

ELASTIC = """\
import torch, horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
@hvd.elastic.run
def train(state):
    model(torch.rand(1, 2)).sum().backward()
    state.commit()
train(hvd.elastic.TorchState(model, optimizer, epoch=0))
"""

BY_HAND = """\
import torch, horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(2, 1)
for weight in model.parameters():
    hvd.broadcast_(weight.data, root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
model(torch.rand(1, 2)).sum().backward()
for weight in model.parameters():
    weight.grad = hvd.allreduce(weight.grad)
optimizer.step()
"""
