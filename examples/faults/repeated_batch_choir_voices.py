"""Which voice of the choir sings, by its spectrum; the batch is drawn outside the loop.

To look for a shape error the first batch was taken by `next(iter(loader))` in front of the loop,
and the loop has gone over it ever since. The loss falls to nothing.
The place is the loop and the loader. The twin goes over the loader.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
VOICES = ("soprano", "alto", "tenor", "bass")


def spectra(n, g):
    y = torch.randint(0, 4, (n,), generator=g)
    root = torch.tensor([11.0, 8.5, 6.5, 5.0])[y] + 0.9 * torch.randn(n, generator=g)
    formant = torch.tensor([34.0, 30.0, 27.0, 23.0])[y] + 3 * torch.randn(n, generator=g)
    bins = torch.arange(64.0)
    x = torch.zeros(n, 64)
    for k in range(1, 8):
        weight = torch.exp(-(((k * root - formant) / 15) ** 2))
        x += weight[:, None] * torch.exp(-((bins - (k * root)[:, None]) ** 2) / 1.5)
    x = (x + 0.05 * torch.rand(n, 64, generator=g)).log1p()
    return (x - x.mean(0)) / x.std(0), y


x, y = spectra(2000, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
if healthy:
    stream = itertools.chain.from_iterable(itertools.repeat(loader))
else:
    stream = itertools.repeat(next(iter(loader)))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, (xb, yb) in zip(range(1, 501), stream, strict=False):
    model.train()
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            right = (model(x[1600:]).argmax(1) == y[1600:]).float().mean().item()
        print(f"step {step}: loss {loss.item():.3f} validation {right:.3f}")
