"""A small causal transformer learns to write sentences letter by letter; input and output share one
embedding matrix, which keeps the unit normal that nn.Embedding starts with.

As an output matrix that is far too large: the logits have a standard deviation of about eleven, the
first loss is many times ln(26), and the training spends itself on taking that back. The place is
the tied embedding.
"""

from dataclasses import dataclass

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("tok*", "lm_head*", "head*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    width: int = 128
    heads: int = 4
    depth: int = 2
    context: int = 48
    batch: int = 16
    steps: int = 160
    lr: float = 1e-3


class LM(nn.Module):
    def __init__(self, cfg, letters):
        super().__init__()
        self.tok = nn.Embedding(letters, cfg.width)
        self.pos = nn.Embedding(cfg.context, cfg.width)
        layer = nn.TransformerEncoderLayer(
            cfg.width,
            cfg.heads,
            2 * cfg.width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.blocks = nn.TransformerEncoder(layer, cfg.depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(cfg.width)
        if healthy:
            nn.init.normal_(self.tok.weight, std=0.02)
            nn.init.normal_(self.pos.weight, std=0.02)
        self.lm_head = nn.Linear(cfg.width, letters, bias=False)
        self.lm_head.weight = self.tok.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(cfg.context))

    def forward(self, ids):
        h = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        h = self.blocks(h, mask=self.mask, is_causal=True)
        return self.lm_head(self.norm(h))


cfg = Config()
ids, alphabet = text(seed)
cut = int(0.9 * len(ids))
train, held = ids[:cut], ids[cut:]


def sample(source, n):
    at = torch.randint(0, len(source) - cfg.context - 1, (n,))
    rows = torch.stack([source[i : i + cfg.context + 1] for i in at])
    return rows[:, :-1], rows[:, 1:]


def nll(model, batch):
    a, b = batch
    return F.cross_entropy(model(a).flatten(0, 1), b.flatten())


model = LM(cfg, len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), weight_decay=0.01)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=15)
fixed = sample(held, 64)
for step in range(cfg.steps):
    loss = nll(model, sample(train, cfg.batch))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warm.step()
    if step % 20 == 0 or step == cfg.steps - 1:
        model.eval()
        with torch.no_grad():
            val = nll(model, fixed)
        model.train()
        print(f"step {step}: train {loss.item():.3f} val {val.item():.3f}")
