"""torchmetrics: accuracy and a mean that are added up over ranks.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

# %%
accuracy = MulticlassAccuracy(num_classes=3, average="micro")
mean = MeanMetric()

# %%
dist.init_process_group("gloo")
rank = dist.get_rank()
for batch in range(3):
    target = torch.tensor([0, 1, 2, 2])
    predicted = torch.tensor([0, 1, 2, (rank + batch) % 3])
    accuracy.update(predicted, target)
    mean.update(torch.tensor(float(rank * 10 + batch)))
print("RESULT", json.dumps([rank, accuracy.compute().item(), mean.compute().item()]))
dist.destroy_process_group()
