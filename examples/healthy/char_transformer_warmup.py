"""A small causal transformer that writes sentences character by character; sound.

It looks odd: the rate starts near 0 (warm-up), biases and norms have no weight decay, the
embedding is tied to the output, gradients are clipped at 1. All of that is customary for language
models.
"""

import math

import lightning as L
import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics.text import Perplexity

ODD = "a rate that starts near zero; embedding and output share weights"

_, seed = arguments(__doc__)


class Windows(Dataset):
    def __init__(self, ids, length):
        self.ids, self.length = ids, length

    def __len__(self):
        return (len(self.ids) - 1) // self.length

    def __getitem__(self, i):
        part = self.ids[i * self.length : (i + 1) * self.length + 1]
        return part[:-1], part[1:]


class CharLM(L.LightningModule):
    def __init__(self, vocab, length=48, width=48, lr=4e-3, warmup=60):
        super().__init__()
        self.save_hyperparameters()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(
            layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, vocab, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)
        self.head.weight = self.tokens.weight
        self.perplexity = Perplexity()

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.positions(torch.arange(n, device=ids.device))
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=ids.device)
        return self.head(self.blocks(x, mask=mask, is_causal=True))

    def training_step(self, batch, batch_idx):
        ids, following = batch
        loss = nn.functional.cross_entropy(self(ids).flatten(0, 1), following.flatten())
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        ids, following = batch
        logits = self(ids)
        self.perplexity(logits, following)
        self.log("val_loss", nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten()))
        self.log("val_ppl", self.perplexity)

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.dim() > 1]
        plain = [p for p in self.parameters() if p.dim() <= 1]
        optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
            lr=self.hparams.lr,
            betas=(0.9, 0.95),
        )
        total, warmup = self.trainer.estimated_stepping_batches, self.hparams.warmup

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


ids, alphabet = text(seed)
cut = int(0.85 * len(ids))
train, val = Windows(ids[:cut], 48), Windows(ids[cut:], 48)
trainer = L.Trainer(
    max_epochs=9,
    accelerator="cpu",
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    CharLM(len(alphabet)),
    DataLoader(train, batch_size=32, shuffle=True),
    DataLoader(val, batch_size=64),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
