"""A classifier of substances by their spectra with a hand-written cross-entropy, log(softmax(x)),
that becomes NaN.

The user multiplies one-hot targets with torch.log of the softmax. Concentrated samples give large
scores; once the probability of a class is exactly 0, its logarithm is -inf and 0 * -inf is NaN.
The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SUBSTANCES = 6


def spectra(n, seed, channels=60):
    r = np.random.default_rng(seed)
    lines = np.random.default_rng(7)
    t = np.arange(channels)
    pure = np.zeros((SUBSTANCES, channels))
    for k in range(SUBSTANCES):
        for centre, height in zip(
            lines.uniform(5, 55, 4), lines.uniform(0.4, 1.2, 4), strict=False
        ):
            pure[k] += height * np.exp(-((t - centre) ** 2) / 12)
    label = r.integers(0, SUBSTANCES, n)
    other = r.integers(0, SUBSTANCES, n)
    share = r.uniform(0, 0.45, n)[:, None]
    concentration = r.lognormal(0, 0.9, n)[:, None]
    x = concentration * ((1 - share) * pure[label] + share * pure[other]) + r.normal(
        0, 0.12, (n, channels)
    )
    return torch.tensor(x, dtype=torch.float32), torch.tensor(label)


class OneHotCrossEntropy(nn.Module):
    def forward(self, scores, label):
        target = nn.functional.one_hot(label, SUBSTANCES).float()
        if healthy:
            logs = torch.log_softmax(scores, dim=1)
        else:
            logs = torch.log(torch.softmax(scores, dim=1))
        return -(target * logs).sum(1).mean()


x, y = spectra(3200, seed)
x = (x - x[:2400].mean()) / x[:2400].std()
loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=48, shuffle=True)
model = nn.Sequential(
    nn.Linear(60, 80), nn.ReLU(), nn.Linear(80, 80), nn.ReLU(), nn.Linear(80, SUBSTANCES)
)
criterion = OneHotCrossEntropy()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(12):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        scores = model(x[2400:])
        val = nn.functional.cross_entropy(scores, y[2400:]).item()
        accuracy = (scores.argmax(1) == y[2400:]).float().mean().item()
    gap = (scores.max(1)[0] - scores.min(1)[0]).max().item()
    print(
        f"epoch {epoch} loss {total:.3f} validation loss {val:.3f} accuracy {accuracy:.3f} widest scores {gap:.0f}"  # noqa: E501
    )
