"""Frauds are 4 % of the payments, and a sampler draws them, with replacement, as often as the rest.

So batches hold the same rare rows again and again and half of the labels are fraud, unlike in the
validation data: that is what is wanted, most frauds are found. There is no fault and no place.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "rare rows come many times an epoch and the class shares of training and validation differ"


def payments(n):
    x = torch.randn(n, 9)
    fraud = (torch.rand(n) < 0.04).float()
    shift = torch.tensor([1.6, -1.2, 1.0, 0, 0, 0.8, 0, 0, 0])
    return x + fraud[:, None] * shift, fraud


arguments(__doc__)
x, fraud = payments(6000)
x_val, fraud_val = payments(3000)
chance = torch.where(fraud == 1, 0.5 / fraud.sum(), 0.5 / (1 - fraud).sum())
loader = DataLoader(
    TensorDataset(x, fraud), batch_size=60, sampler=WeightedRandomSampler(chance, 3000)
)
model = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.4)
for epoch in range(8):
    total = 0.0
    for payment, label in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(payment), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    scheduler.step()
    with torch.no_grad():
        alarm = model(x_val) > 0
    recall, spared = alarm[fraud_val == 1].float().mean(), (~alarm)[fraud_val == 0].float().mean()
    if epoch % 2:
        print(
            f"epoch {epoch}: loss {total:.3f}, frauds found {recall:.3f},"
            f" others let through {spared:.3f}"
        )
