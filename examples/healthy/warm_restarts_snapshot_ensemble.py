"""Phonemes from cepstra with cosine restarts; the ends of the cycles but the first are averaged.

The rate goes to almost nothing and jumps back up (Loshchilov & Hutter; Huang et al.: snapshot
ensembles). After each restart the loss leaps and the validation gets worse for a while. The
ensemble is what is wanted.
"""

import copy

import torch
from data import arguments
from torch import nn

ODD = "the rate falls a thousandfold and jumps back three times, and the loss leaps with it"

_, seed = arguments(__doc__)
PHONEMES, CEPSTRA, CYCLES, EPOCHS = 10, 26, 4, 5


def frames(count, means, factors):
    """Cepstra with a covariance of their own for each phoneme; some are near one another."""
    label = torch.randint(0, PHONEMES, (count,))
    hidden = torch.randn(count, 6, 1)
    return means[label] + (factors[label] @ hidden).squeeze(-1) + 1.3 * torch.randn(
        count, CEPSTRA
    ), label


class Frames(nn.Module):
    def __init__(self, width=80):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CEPSTRA, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, PHONEMES),
        )

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def probabilities(model, x):
    model.eval()
    return model(x).softmax(-1)


def score(p, y):
    return (p.argmax(1) == y).float().mean().item(), nn.functional.nll_loss(p.log(), y).item()


means, factors = 0.25 * torch.randn(PHONEMES, CEPSTRA), 0.8 * torch.randn(PHONEMES, CEPSTRA, 6)
(x, y), (x_val, y_val) = frames(4000, means, factors), frames(1000, means, factors)
center, spread = x.mean(0), x.std(0)
x, x_val = (x - center) / spread, (x_val - center) / spread
model = Frames()
optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9, weight_decay=5e-4)
batches = len(x) // 100
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    optimizer, EPOCHS * batches, eta_min=1.5e-4
)
criterion = nn.CrossEntropyLoss()
snapshots = []

for epoch in range(CYCLES * EPOCHS):
    model.train()
    for rows in torch.randperm(len(x)).split(100):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    accuracy, val_loss = score(probabilities(model, x_val), y_val)
    print(
        f"epoch {epoch:2d} loss {loss.item():.3f} val loss {val_loss:.3f} "
        f"val accuracy {accuracy:.3f}"
    )
    if epoch % EPOCHS == EPOCHS - 1:
        snapshots.append(copy.deepcopy(model))

together = torch.stack([probabilities(snapshot, x_val) for snapshot in snapshots[1:]]).mean(0)
accuracy, val_loss = score(together, y_val)
print(f"validation accuracy of the ensemble {accuracy:.3f}, loss {val_loss:.3f}")
