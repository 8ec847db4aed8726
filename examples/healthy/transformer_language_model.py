"""A causal transformer on characters: weight-tied embeddings, warm-up, cosine, clipping."""

import math

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

ODD = "the rate is 0 at the first step, tied weights, gradients clipped at every early step"

_, seed = arguments(__doc__)
ids, alphabet = text(seed, 500)
rows = ids[: len(ids) // 33 * 33].view(-1, 33)


class Model(nn.Module):
    def __init__(self, n, width=32, length=32):
        super().__init__()
        self.token = nn.Embedding(n, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 2, 64, dropout=0.1, batch_first=True, norm_first=True, activation="gelu"
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, n, bias=False)
        self.head.weight = self.token.weight
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask)

    def forward(self, chars):
        h = self.token(chars) + self.position(torch.arange(chars.shape[1]))
        for block in self.blocks:
            h = block(h, src_mask=self.mask, is_causal=True)
        return self.head(self.norm(h))


model = Model(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
total, warm = 160, 30
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lambda s: s / warm if s < warm else 0.5 * (1 + math.cos(math.pi * (s - warm) / (total - warm))),
)
for (chars,) in batches(rows, size=16, steps=total, seed=seed):
    scores = model(chars[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), chars[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.3f}")
