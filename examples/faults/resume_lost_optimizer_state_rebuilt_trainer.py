"""Training in short jobs whose fit function builds its own Adam, so each job loses its moments.

The person's fit function makes a new optimizer of the given class on each call (to be sure that it
has the right parameters), while the checkpoint stores the one made outside, whose state is empty.
After each job the moments of Adam are gone and the loss leaps. The place is the optimizer.
"""

import io

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

JOBS, EPOCHS_PER_JOB = 8, 3


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
        )

    def forward(self, x):
        return x + self.inner(x)


def build():
    model = nn.Sequential(
        nn.Linear(10, 64), ResidualBlock(64), ResidualBlock(64), ResidualBlock(64), nn.Linear(64, 1)
    )
    return model, torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.999))


def save(model, optimizer):
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def restore(model, optimizer, checkpoint):
    stored = torch.load(io.BytesIO(checkpoint))
    model.load_state_dict(stored["model"])
    optimizer.load_state_dict(stored["optimizer"])


def fit(model, optimizer, loader, epochs):
    if not healthy:
        optimizer = type(optimizer)(model.parameters(), **optimizer.defaults)
    losses = []
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def explained(model, x, y):
    model.eval()
    return 1 - (model(x).squeeze(1) - y).pow(2).mean().item() / y.var().item()


def main():
    features, target = make_friedman1(n_samples=4000, noise=0.4, random_state=seed)
    x = torch.tensor((features - features.mean(0)) / features.std(0), dtype=torch.float32)
    y = torch.tensor((target - target.mean()) / target.std(), dtype=torch.float32)
    loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=64, shuffle=True)
    model, optimizer = build()
    checkpoint = save(model, optimizer)
    before = None
    for job in range(JOBS):
        model, optimizer = build()
        restore(model, optimizer, checkpoint)
        losses = fit(model, optimizer, loader, EPOCHS_PER_JOB)
        checkpoint = save(model, optimizer)
        leap = "" if before is None else f"before {before:.4f}"
        print(
            f"job {job} {leap} first batches {np.mean(losses[2:12]):.4f} "
            f"end {np.mean(losses[-20:]):.4f} "
            f"val explained {explained(model, x[3000:], y[3000:]):.4f}"
        )
        before = np.mean(losses[-20:])


main()
