"""A GRU tagger trains with four accumulated micro-batches, warm-up from a tiny rate, strong
dropout and label smoothing.

Odd: gradients are not empty when backward starts, most backward passes have no step, the first
rates are nearly 0, and the training loss stays above the validation loss and far from 0. Sound:
each loss is divided by four, zero_grad follows every step, dropout is off and the loss unsmoothed
in validation.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A GRU tagger trains with four accumulated micro-batches, warm-up from a tiny rate, "
    "strong dropout and label smoothing"
)
_, seed = arguments(__doc__)
ACCUMULATE = 4


def tagged(n, g, length=18, words=60, tags=5):
    """Each word has a usual tag; some words take another one after a word of tag 0."""
    usual = torch.randint(0, tags, (words,), generator=torch.Generator().manual_seed(7))
    other = (usual + 2) % tags
    x = torch.randint(0, words, (n, length), generator=g)
    y = usual[x]
    before = torch.zeros_like(x)
    before[:, 1:] = (usual[x[:, :-1]] == 0).long()
    turned = (before == 1) & (x % 2 == 0)
    y = torch.where(turned, other[x], y)
    slip = torch.rand(n, length, generator=g) < 0.03
    return x, torch.where(slip, torch.randint(0, tags, y.shape, generator=g), y)


class Tagger(nn.Module):
    def __init__(self, words=60, tags=5, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.drop = nn.Dropout(0.3)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, tags)

    def forward(self, x):
        h, _ = self.gru(self.drop(self.embed(x)))
        return self.out(self.drop(h)).transpose(1, 2)


g = torch.Generator().manual_seed(seed)
loader = DataLoader(TensorDataset(*tagged(2400, g)), batch_size=10, shuffle=True)
x_val, y_val = tagged(500, g)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.01)
total = 5 * len(loader) // ACCUMULATE
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) / 60, max(0.05, (total - s) / (total - 60)))
)
smoothed, plain = nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss()
for epoch in range(5):
    model.train()
    mean = 0.0
    for i, (x, y) in enumerate(loader, 1):
        loss = smoothed(model(x), y)
        (loss / ACCUMULATE).backward()
        mean += loss.item() / len(loader)
        if i % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch}: loss {mean:.3f}, val loss {plain(out, y_val):.3f}, val accuracy {accuracy:.3f}"  # noqa: E501
    )
