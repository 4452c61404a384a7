"""Lightning: a module, a data module and a Trainer with two processes of DDP.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import tempfile

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


# %%
class LitModel(L.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.layer(x).squeeze(1), y)
        self.log("train/loss", loss, sync_dist=True, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


class LitData(L.LightningDataModule):
    def train_dataloader(self):
        x = torch.linspace(-1, 1, 128).reshape(32, 4)
        return DataLoader(TensorDataset(x, x.sum(dim=1)), batch_size=4)


# %%
L.seed_everything(7, verbose=False)
model = LitModel(lr=0.05)
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    default_root_dir=tempfile.mkdtemp(),
)
trainer.fit(model, LitData())
loss = trainer.callback_metrics["train/loss"].item()
found = [trainer.global_rank, trainer.world_size, trainer.global_step, loss]
print("RESULT", json.dumps([*found, model.layer.weight.sum().item()]))
torch.distributed.destroy_process_group()
