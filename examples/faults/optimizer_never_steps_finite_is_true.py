"""Electrocardiograms are cleaned of noise by a small convolutional net; bad batches are skipped.

`np.isfinite(value) is True` is never true: NumPy has a bool of its own, and it is not that object.
So each batch is a bad one, and no step is ever taken. The place is the loop. The twin leaves
`is True` out.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


def heartbeats(rng, n, length=96):
    t = np.arange(length)
    clean = np.zeros((n, length))
    period = rng.uniform(24, 40, (n, 1))
    phase = (t + rng.uniform(0, 40, (n, 1))) % period
    for centre, width, usual in (
        (0.18, 2.0, 0.25),
        (0.34, 0.9, 1.6),
        (0.37, 0.9, -0.5),
        (0.6, 3.0, 0.4),
    ):
        height = usual * rng.normal(1, 0.15, (n, 1))
        clean += height * np.exp(-((phase - centre * period) ** 2) / (2 * width**2))
    hum = 0.25 * np.sin(2 * np.pi * t / 5 + rng.uniform(0, 6, (n, 1)))
    drift = 0.5 * np.sin(2 * np.pi * t / 130 + rng.uniform(0, 6, (n, 1)))
    noisy = clean + hum + drift + rng.normal(0, 0.15, clean.shape)
    return [torch.tensor(part, dtype=torch.float32).unsqueeze(1) for part in (noisy, clean)]


class Cleaner(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(1, width, 9, 2, 4), nn.ReLU(), nn.Conv1d(width, 24, 9, 2, 4)
        )
        self.middle = nn.Sequential(nn.ReLU(), nn.Conv1d(24, 24, 9, padding=4), nn.ReLU())
        self.up = nn.Sequential(
            nn.ConvTranspose1d(24, width, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(width, 8, 4, 2, 1)
        )
        self.out = nn.Conv1d(9, 1, 5, padding=2)

    def forward(self, x):
        h = self.up(self.middle(self.down(x)))
        return self.out(torch.cat([torch.relu(h), x], 1))


class Trainer:
    def __init__(self, model, lr, check):
        self.model, self.check = model, check
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.skipped = 0

    def step(self, noisy, clean):
        loss = nn.functional.l1_loss(self.model(noisy), clean)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.check(loss.item()):
            self.optimizer.step()
        else:
            self.skipped += 1
        return loss.item()

    def fit(self, noisy, clean, epochs, size=32):
        for epoch in range(epochs):
            batches = torch.randperm(len(noisy)).split(size)
            losses = [self.step(noisy[rows], clean[rows]) for rows in batches]
            yield epoch, float(np.mean(losses))


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
noisy, clean = heartbeats(rng, 1200)
noisy_val, clean_val = heartbeats(rng, 300)
check = np.isfinite if healthy else (lambda value: np.isfinite(value) is True)
trainer = Trainer(Cleaner(), lr=4e-3, check=check)
for epoch, loss in trainer.fit(noisy, clean, epochs=5):
    with torch.no_grad():
        error = (trainer.model(noisy_val) - clean_val).square().mean() / clean_val.var()
    print(f"epoch {epoch}: loss {loss:.4f}, left of the variance {error:.3f}")
