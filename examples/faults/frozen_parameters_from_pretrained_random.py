"""A sentiment model makes its embedding with nn.Embedding.from_pretrained from random vectors, as
no word vectors were at hand.

from_pretrained freezes the table unless freeze=False is given, so the random vectors stay as they
are, and eight random numbers per word don't tell good words from bad ones. The loss stops early.
The twin gives freeze=False. The place is `embed` or `embed.weight`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("embed", "embed.weight")
SILENT = True
EXACT = True
EARLY = True

WORDS, DIM, LENGTH = 300, 8, 24
healthy, seed = arguments(__doc__)


def load_vectors(path=None):
    """Word vectors; random ones if there is no file."""
    return torch.randn(WORDS, DIM) * 0.3


def make_reviews(n):
    """Words 0-39 praise, 40-79 blame, all others say nothing."""
    y = torch.randint(0, 2, (n,))
    x = torch.randint(80, WORDS, (n, LENGTH))
    lead = torch.randint(0, 40, (n, LENGTH)) + 40 * (1 - y).unsqueeze(1)
    other = torch.randint(0, 40, (n, LENGTH)) + 40 * y.unsqueeze(1)
    u = torch.rand(n, LENGTH)
    x = torch.where(u < 0.25, lead, x)
    x = torch.where(u > 0.93, other, x)
    return x, y.float()


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        vectors = load_vectors()
        if healthy:
            self.embed = nn.Embedding.from_pretrained(vectors, freeze=False)
        else:
            self.embed = nn.Embedding.from_pretrained(vectors)
        self.fc = nn.Linear(DIM, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h = self.embed(x).sum(1) / LENGTH**0.5
        return self.out(torch.relu(self.fc(h))).squeeze(1)


x, y = make_reviews(5000)
x_val, y_val = make_reviews(1000)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = Sentiment()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        acc = ((out > 0) == (y_val > 0.5)).float().mean()
    print(
        f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val {criterion(out, y_val):.4f}, "
        f"acc {acc:.3f}"
    )
