"""Predicts the outcome of chess games; the two loaders split the same file by different draws.

`make_loader` is called once for each part. Each call shuffles the rows anew and takes its share, so
most rows of the validation part are rows that are trained on, and its accuracy says little.
The place is the loader (and so the validation).
The twin fixes the generator of the shuffle, so that both calls cut the same order.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def games(n):
    """Twenty numbers about the position after 15 moves, and whether white won."""
    x = torch.randn(n, 20)
    edge = 0.8 * x[:, 0] + 0.6 * x[:, 1] * x[:, 2] - 0.5 * x[:, 3]
    return x, (edge + 0.9 * torch.randn(n) > 0).float()


class GameFile:
    def __init__(self, n):
        self.x, self.y = games(n)

    def make_loader(self, part, batch_size=32):
        n = len(self.x)
        generator = torch.Generator().manual_seed(seed) if healthy else None
        order = torch.randperm(n, generator=generator)
        cut = int(0.8 * n)
        rows = order[:cut] if part == "train" else order[cut:]
        data = TensorDataset(self.x[rows], self.y[rows])
        return DataLoader(data, batch_size=batch_size, shuffle=part == "train")


def accuracy(model, pairs):
    model.eval()
    with torch.no_grad():
        right = [((model(x).squeeze(1) > 0) == (y > 0.5)).float() for x, y in pairs]
    return torch.cat(right).mean().item()


file = GameFile(700)
train_loader = file.make_loader("train")
val_loader = file.make_loader("val")
next_month = games(1000)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)

for epoch in range(24):
    model.train()
    losses = []
    for x, y in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 4 == 3:
        mean = sum(losses) / len(losses)
        print(f"epoch {epoch + 1}: loss {mean:.3f}, val accuracy {accuracy(model, val_loader):.3f}")
print(f"games of the next month: accuracy {accuracy(model, [next_month]):.3f}")
