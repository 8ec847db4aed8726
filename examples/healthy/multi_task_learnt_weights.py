"""Age and smoking from blood values: one trunk, two heads, weights of the losses learnt.

The losses are weighed by learnt uncertainties (Kendall, Gal and Cipolla): exp(-s) * loss + s. Age
is known of everyone, smoking only of seven in ten, and the others are masked out. The sum of the
losses may fall below zero, as the terms s can.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ODD = "the total loss may be negative, and the loss has parameters of its own in the optimizer"

_, seed = arguments(__doc__)
MARKERS = 24


def blood(n, g):
    rule = torch.Generator().manual_seed(5)
    a, b = torch.randn(2, MARKERS, generator=rule) * 0.6
    age = torch.rand(n, generator=g) * 60 + 20
    smokes = (torch.rand(n, generator=g) < 0.35).float()
    z = (age - 50) / 17.3
    x = torch.tanh(z[:, None] * a) + smokes[:, None] * b + 0.2 * (z * smokes)[:, None] * a.flip(0)
    x = x + 0.8 * torch.randn(n, MARKERS, generator=g)
    known = torch.rand(n, generator=g) < 0.7
    return x, z, smokes, known


class BloodNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(MARKERS, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.GELU(),
        )  # fmt: skip
        self.age = nn.Linear(width, 1)
        self.smokes = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h).squeeze(-1), self.smokes(h).squeeze(-1)


class UncertaintyLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, age, smokes, true_age, true_smokes, known):
        losses = torch.stack([
            F.mse_loss(age, true_age) / 2,
            F.binary_cross_entropy_with_logits(smokes[known], true_smokes[known]),
        ])  # fmt: skip
        return (torch.exp(-self.log_variance) * losses + self.log_variance / 2).sum()


g = torch.Generator().manual_seed(seed)
train_set, val_set = random_split(TensorDataset(*blood(3000, g)), [2400, 600], generator=g)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=300)
model, criterion = BloodNet(), UncertaintyLoss()
optimizer = torch.optim.AdamW(
    [
        {"params": model.parameters(), "weight_decay": 1e-2},
        {"params": criterion.parameters(), "weight_decay": 0.0},
    ],
    lr=1e-3,
)
for epoch in range(1, 11):
    model.train()
    total = 0.0
    for x, age, smokes, known in train_loader:
        loss = criterion(*model(x), age, smokes, known)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        rows = [(*model(x), age, smokes) for x, age, smokes, _ in val_loader]
    age, smokes, true_age, true_smokes = (torch.cat(part) for part in zip(*rows, strict=False))
    years = 17.3 * (age - true_age).abs().mean()
    accuracy = ((smokes > 0) == (true_smokes > 0.5)).float().mean()
    print(
        f"{epoch} loss {total / len(train_loader):.3f} age {years:.1f} years smokes {accuracy:.3f}"
    )
