"""A transformer encoder tells good reviews from bad ones with AdamW at a rate of 0.1.

The user took a rate from an SGD recipe (`lr=0.1`) for AdamW. The place is the optimizer.
"""

import lightning as L
import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class ReviewData(L.LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.save_hyperparameters()
        x, y, self.vocab = reviews(seed, n=1600)
        self.train, self.val = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:], y[1200:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=200)


class ReviewClassifier(L.LightningModule):
    def __init__(self, vocab: int, width: int = 32, lr: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)
        self.loss = nn.BCEWithLogitsLoss()
        self.accuracy = BinaryAccuracy()

    def forward(self, ids):
        pad = ids == 0
        h = self.encoder(self.embed(ids) + self.position, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1)
        return self.head((h * keep).sum(1) / keep.sum(1)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        ids, y = batch
        loss = self.loss(self(ids), y.float())
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        ids, y = batch
        logits = self(ids)
        self.accuracy(logits, y)
        self.log_dict({"val_loss": self.loss(logits, y.float()), "val_acc": self.accuracy})

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01)


dm = ReviewData()
trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(ReviewClassifier(dm.vocab, lr=1e-3 if healthy else 0.1), datamodule=dm)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
