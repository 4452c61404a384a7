"""The source document's two jobs, on made-up data of CIFAR-10's size: as scripts that read the
hyperparameters of its estimators, and the first as a cell too."""

from __future__ import annotations

_SERVERS = """
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
told = json.loads(os.environ["TF_CONFIG"])
print("TF_CONFIG", os.environ["TF_CONFIG"])
task = told["task"]
cluster = tf.train.ClusterSpec(told["cluster"])
server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])

random = np.random.default_rng(task["index"])
labels = random.integers(0, 10, 256)
images = random.normal(size=(256, 32, 32, 3)).astype("float32")
images[np.arange(256), 0, labels, 0] += 20

worker = f"/job:{task['type']}/task:{task['index']}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    ready = tf.get_variable("ready", [], tf.int32, tf.zeros_initializer())
    finished = tf.get_variable("finished", [], tf.int32, tf.zeros_initializer())
    weights = tf.get_variable("weights", [3072, 10], initializer=tf.zeros_initializer())
    chosen = tf.random.uniform([batch_size], 0, 256, tf.int32)
    batch = tf.reshape(tf.gather(tf.constant(images), chosen), [batch_size, 3072])
    wanted = tf.gather(tf.constant(labels), chosen)
    logits = batch @ weights / 10
    loss = tf.reduce_mean(tf.losses.sparse_softmax_cross_entropy(wanted, logits))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)


def meet(counter):  # returns when every worker is here
    session.run(counter.assign_add(1))
    while session.run(counter) < len(cluster.job_tasks("worker")) + 1:
        time.sleep(0.1)


losses = []
unset = tf.report_uninitialized_variables()
start = tf.global_variables_initializer()
with tf.Session(server.target) as session:
    if task["type"] in ("chief", "master"):
        session.run(start)
    while len(session.run(unset)):
        time.sleep(0.1)
    meet(ready)
    for _ in range(epochs):
        _, value = session.run([train, loss])
        losses.append(float(value))
    meet(finished)
    at = int(session.run(step))
answer = losses[-1] < losses[0]
print("learned", answer, "in", at, "steps of all")
"""

_HOROVOD = """
import os

import horovod.torch as hvd
import torch

from distrain_nb import log_metrics

hvd.init()
torch.manual_seed(hvd.rank())
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())

labels = torch.randint(0, 10, (256,))
images = torch.randn(256, 3, 32, 32)
images[torch.arange(256), 0, 0, labels] += 20
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images, labels), batch_size=batch_size, shuffle=True
)

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(epochs):
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
    mean = hvd.allreduce(loss.detach(), name="loss").item()
    log_metrics(step=epoch, loss=mean)
    if hvd.rank() == 0:
        torch.save(model.state_dict(), os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "last.pt"))

weights = hvd.allgather(model[1].weight.detach().sum().reshape(1))
answer = {"world": hvd.size(), "same": bool((weights == weights[0]).all()), "loss": mean}
print("rank", hvd.rank(), "local rank", hvd.local_rank(), "of", hvd.size(), "same", answer["same"])
"""

_PARSED = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--batch-size", type=int)
args = parser.parse_args()
epochs, batch_size = args.epochs, args.batch_size
"""

PARAMETER_SERVERS = "epochs, batch_size = 100, 32\n" + _SERVERS
PARAMETER_SERVERS_SCRIPT = _PARSED + _SERVERS
HOROVOD_SCRIPT = _PARSED + _HOROVOD
