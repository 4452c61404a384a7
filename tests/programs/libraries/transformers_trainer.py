"""transformers: a Trainer on a tiny BERT, its arguments made beside it.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

# %%
model_config = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


class Parity(Dataset):
    def __init__(self, length):
        generator = torch.Generator().manual_seed(0)
        self.ids = torch.randint(0, 50, (length, 8), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "labels": ids.sum() % 2}


# %%
args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    num_train_epochs=1,
    per_device_train_batch_size=4,
    learning_rate=1e-3,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    logging_strategy="no",
    disable_tqdm=True,
)
set_seed(0)
trainer = Trainer(
    model=BertForSequenceClassification(model_config), args=args, train_dataset=Parity(32)
)
outcome = trainer.train()
weights = sum(p.double().sum().item() for p in trainer.model.parameters())
found = [args.process_index, args.world_size, outcome.global_step, outcome.training_loss]
print("RESULT", json.dumps([*found, weights]))
torch.distributed.destroy_process_group()
