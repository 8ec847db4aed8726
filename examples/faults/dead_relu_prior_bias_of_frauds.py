"""Fraud in card payments: the prior bias meant for the output goes to every layer.

Starting the output at the log-odds of the rare class spares the first epochs. The helper is handed
to `model.apply`, so that hidden layers start at -4.6 as well and no ReLU ever opens: the score is
one constant. The place is the biases of the hidden layers. The twin sets the output's bias alone.
"""

import math

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("trunk.0.bias", "trunk.1", "trunk.2.bias", "trunk.3", "trunk.4.bias", "trunk.5")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def payments(n: int = 20000):
    g = torch.Generator().manual_seed(150 + seed)
    amount = torch.exp(3.3 + 1.1 * torch.randn(n, generator=g))
    hour = torch.rand(n, generator=g) * 24
    abroad = (torch.rand(n, generator=g) < 0.12).float()
    age = torch.randn(n, generator=g) * 14 + 45
    last = torch.exp(1.5 * torch.randn(n, generator=g) + 1)
    count = torch.poisson(torch.full((n,), 3.0), generator=g)
    merchant = torch.randn(n, 4, generator=g)
    night = torch.exp(-(((hour - 3) / 2.5) ** 2))
    logit = -5.6 + 0.9 * (amount.log() - 3.3) + 1.8 * night + 1.5 * abroad * (count > 4)
    logit = logit + 1.2 * merchant[:, 0] * merchant[:, 1] - 0.7 * last.log() + 0.5 * abroad
    label = (torch.rand(n, generator=g) < torch.sigmoid(1.3 * logit)).float()
    x = torch.stack([amount.log(), hour, abroad, age, last.log(), count], 1)
    return torch.cat([x, merchant], 1), label


def start_at_prior(rate: float):
    bias = -math.log((1 - rate) / rate)

    def init(module):
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.bias, bias)

    return init


class FraudNet(nn.Module):
    def __init__(self, inputs: int, width: int = 64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.trunk(x)).squeeze(1)


def auc(score, label):
    pos, neg = score[label > 0], score[label == 0]
    return ((pos[:, None] > neg).float() + 0.5 * (pos[:, None] == neg).float()).mean().item()


x, y = payments()
x, x_val = standardise(x[:15000], x[15000:])
y, y_val = y[:15000], y[15000:]
model = FraudNet(x.shape[1])
(model.out if healthy else model).apply(start_at_prior(y.mean().item()))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True, drop_last=True)
print(f"fraud in {100 * y.mean().item():.2f} % of the payments")

for epoch in range(8):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        score = model(x_val)
        val = nn.functional.binary_cross_entropy_with_logits(score, y_val).item()
    print(
        f"epoch {epoch + 1}: train {total / len(loader):.4f}, "
        f"validation {val:.4f}, AUC {auc(score, y_val):.4f}"
    )
print(f"validation AUC {auc(score, y_val):.4f}")
