"""Masked word modelling with a small transformer: 15 % of the places count, the rest is ignored."""

import torch
from data import arguments
from torch import nn

ODD = (
    "85 % of the targets are -100; warm-up from a rate of 0; both of a pair hidden cannot be "
    "guessed"
)

_, seed = arguments(__doc__)
WORDS, LENGTH, MASK = 40, 12, 40
partner = torch.randperm(WORDS)


def sentences(n):
    """Pairs of words: the second of each pair follows from the first."""
    first = torch.randint(WORDS, (n, LENGTH // 2))
    return torch.stack([first, partner[first]], 2).flatten(1)


def hide(ids):
    hidden = torch.rand(ids.shape) < 0.15
    hidden[:, 0] |= ~hidden.any(1)
    return ids.masked_fill(hidden, MASK), ids.masked_fill(~hidden, -100)


class MaskedModel(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, d)
        self.places = nn.Embedding(LENGTH, d)
        layer = nn.TransformerEncoderLayer(d, 4, 96, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.bias = nn.Parameter(torch.zeros(WORDS + 1))
        nn.init.normal_(self.words.weight, std=0.1)
        nn.init.normal_(self.places.weight, std=0.1)

    def forward(self, ids):
        h = self.words(ids) + self.places(torch.arange(LENGTH))
        return self.norm(self.encoder(h)) @ self.words.weight.T + self.bias


model = MaskedModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) / 50, (400 - s) / 350)
)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
for step in range(400):
    ids, target = hide(sentences(48))
    loss = criterion(model(ids).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
with torch.no_grad():
    ids, target = hide(sentences(1000))
    val_loss = criterion(model(ids).flatten(0, 1), target.flatten())
print(f"loss {loss.item():.3f}, fresh sentences {val_loss:.3f}")
