"""A causal transformer over characters with a linear warm-up and a cosine down to nothing."""

import math

import torch
from data import arguments, text
from torch import nn

ODD = "the first steps hardly move (warm-up from 0), and so do the last (cosine to nearly 0)"

LENGTH, STEPS, WARMUP = 32, 420, 60


class CharTransformer(nn.Module):
    def __init__(self, n_chars, dim=48):
        super().__init__()
        self.token = nn.Embedding(n_chars, dim)
        self.position = nn.Embedding(LENGTH, dim)
        layer = nn.TransformerEncoderLayer(
            dim, 4, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_chars)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, chars):
        h = self.token(chars) + self.position(torch.arange(chars.shape[1]))
        return self.head(self.norm(self.blocks(h, mask=self.mask, is_causal=True)))


def rate(step):
    if step < WARMUP:
        return step / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def loss_of(model, rows):
    return nn.functional.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])


_, seed = arguments(__doc__)
corpus, alphabet = text(seed)
rows = corpus[: len(corpus) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
train, val = rows[:-150], rows[-150:]
model = CharTransformer(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
for step in range(STEPS):
    model.train()
    batch = train[torch.randint(0, len(train), (24,))]
    loss = loss_of(model, batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 60 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = loss_of(model, val)
print(f"loss {loss.item():.3f}, validation {val_loss.item():.3f}")
