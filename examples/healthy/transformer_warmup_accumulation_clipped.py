"""A causal transformer on text: warm-up from nearly 0, two backwards per step, clipped at 0.5."""

import math

import torch
from data import arguments, text
from torch import nn

ODD = "two backward passes per step, a flat start under warm-up, nearly every gradient clipped"

_, seed = arguments(__doc__)
LENGTH, STEPS, WARMUP, MICRO = 24, 280, 30, 2
row, alphabet = text(seed, sentences=2500)
windows = row[: len(row) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
val, windows = windows[:100], windows[100:]


class CharTransformer(nn.Module):
    def __init__(self, letters, width=48):
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.place = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        nn.init.normal_(self.letter.weight, std=0.5)
        nn.init.normal_(self.place.weight, std=0.5)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, ids):
        h = self.letter(ids) + self.place.weight
        return self.head(self.norm(self.blocks(h, mask=self.mask, is_causal=True)))


def rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.05 + 0.475 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


model = CharTransformer(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
for step in range(STEPS):
    optimizer.zero_grad()
    for _ in range(MICRO):
        ids = windows[torch.randint(0, len(windows), (20,))]
        loss = criterion(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        (loss / MICRO).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    schedule.step()
with torch.no_grad():
    val_loss = criterion(model(val[:, :-1]).flatten(0, 1), val[:, 1:].flatten()).item()
print(f"train {loss.item():.3f}, validation {val_loss:.3f}")
