"""A text classifier (EmbeddingBag) with ExponentialLR stepped per batch instead of per epoch.

The user set `"interval": "step"` in the scheduler's config with a gamma of 0.85 meant for epochs;
the rate is gone before the first epoch ends. The place is the optimizer.
"""

import lightning as L
import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import BinaryAccuracy

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Reviews(Dataset):
    def __init__(self, x, y):
        self.items = [(row[row > 0], label) for row, label in zip(x, y, strict=True)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    rows, labels = zip(*items, strict=True)
    offsets = torch.tensor([0] + [len(row) for row in rows[:-1]]).cumsum(0)
    return torch.cat(rows), offsets, torch.stack(labels).float()


class BagOfWords(L.LightningModule):
    def __init__(self, vocab, width=32, lr=5e-3, gamma=0.85):
        super().__init__()
        self.save_hyperparameters()
        self.bag = nn.EmbeddingBag(vocab, width, mode="sum")
        self.mlp = nn.Sequential(
            nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 1)
        )
        nn.init.normal_(self.bag.weight, std=0.1)
        self.loss = nn.BCEWithLogitsLoss()
        self.val_acc = BinaryAccuracy()

    def forward(self, ids, offsets):
        return self.mlp(self.bag(ids, offsets))[:, 0]

    def training_step(self, batch, batch_idx):
        ids, offsets, y = batch
        loss = self.loss(self(ids, offsets), y)
        self.log("train_loss", loss, batch_size=len(y))
        return loss

    def validation_step(self, batch, batch_idx):
        ids, offsets, y = batch
        logits = self(ids, offsets)
        self.val_acc(logits, y.int())
        self.log("val_loss", self.loss(logits, y), batch_size=len(y))
        self.log("val_acc", self.val_acc, batch_size=len(y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=self.hparams.gamma)
        interval = "epoch" if healthy else "step"
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": interval},
        }


x, y, vocab = reviews(seed, n=2400)
trainer = L.Trainer(
    max_epochs=6,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    BagOfWords(vocab),
    DataLoader(Reviews(x[:1900], y[:1900]), batch_size=32, shuffle=True, collate_fn=collate),
    DataLoader(Reviews(x[1900:], y[1900:]), batch_size=250, collate_fn=collate),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
