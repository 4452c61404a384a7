"""Lightning: callbacks, a logger, the best checkpoint, validation, a test by ranks.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import tempfile
import warnings

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy

warnings.filterwarnings("ignore", ".*does not have many workers.*")


# %%
class History(pl.Callback):
    def __init__(self):
        self.seen = []

    @rank_zero_only
    def on_validation_end(self, trainer, pl_module):
        self.seen.append(round(trainer.callback_metrics["val_acc"].item(), 4))


class Classifier(pl.LightningModule):
    def __init__(self, learning_rate: float = 0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)
        self.accuracy = BinaryAccuracy()

    def forward(self, x):
        return self.layer(x).squeeze(1)

    def training_step(self, batch, batch_idx):
        return F.binary_cross_entropy_with_logits(self(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        self.accuracy(self(batch[0]).sigmoid(), batch[1].int())
        self.log("val_acc", self.accuracy, on_epoch=True, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.learning_rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


# %%
def loaders():
    x = torch.randn(48, 4, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, (x.sum(dim=1) > 0).float())
    return DataLoader(data, batch_size=6, shuffle=True), DataLoader(data, batch_size=6)


root = tempfile.mkdtemp()
callbacks = [
    ModelCheckpoint(dirpath=root, monitor="val_acc", mode="max"),
    EarlyStopping("val_acc", mode="max", patience=5),
    LearningRateMonitor(),
    history := History(),
]

# %%
pl.seed_everything(1234, workers=True, verbose=False)
train_loader, val_loader = loaders()
trainer = pl.Trainer(
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    max_epochs=2,
    callbacks=callbacks,
    logger=CSVLogger(tempfile.mkdtemp()),
    log_every_n_steps=1,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
model = Classifier()
trainer.fit(model, train_loader, val_loader)
metrics = trainer.validate(model, val_loader, verbose=False)
found = [trainer.global_rank, trainer.world_size, metrics[0]["val_acc"], history.seen]
print("RESULT", json.dumps([*found, model.layer.weight.sum().item()]))
torch.distributed.destroy_process_group()
