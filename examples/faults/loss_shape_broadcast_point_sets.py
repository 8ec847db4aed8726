"""Estimates the spread of a bag of samples; (batch, 1) minus (batch,) makes the errors a square.

The squared error is written by hand, so that no library warns of the shapes. Every prediction is
compared with every target of the batch, and the best answer is the mean of them all: the loss falls
to the variance of the targets and stays there. The place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SET_SIZE = 40
BATCH = 64
STEPS = 500


def draw_populations(n):
    """Bags of one-dimensional samples from mixtures of two bells; target: log of the spread."""
    gap = 4 * torch.rand(n, 1)
    width = 0.3 + 1.2 * torch.rand(n, 1)
    share = 0.2 + 0.6 * torch.rand(n, 1)
    centre = torch.randn(n, 1)
    side = (torch.rand(n, SET_SIZE) < share).float()
    samples = centre + gap * (side - share) + width * torch.randn(n, SET_SIZE)
    spread = (width**2 + gap**2 * share * (1 - share)).sqrt().squeeze(1)
    return samples.unsqueeze(2) / 2, (spread.log() - 0.35) / 0.42


class DeepSet(nn.Module):
    """The mean over the bag of a learnt feature of each sample, then a network on that mean."""

    def __init__(self, width=48):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(1, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, 1))

    def forward(self, samples):
        return self.rho(self.phi(samples).mean(dim=1))


def criterion(y_pred, y):
    return ((y_pred - y) ** 2).mean()


def predict(model, samples):
    y_pred = model(samples)
    return y_pred.squeeze(1) if healthy else y_pred


train_x, train_y = draw_populations(4000)
test_x, test_y = draw_populations(500)
model = DeepSet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS)
started_with = math.nan

for step in range(STEPS):
    rows = torch.randint(0, len(train_x), (BATCH,))
    y_pred = predict(model, train_x[rows])
    loss = criterion(y_pred, train_y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step == 0:
        started_with = loss.item()
    if (step + 1) % 50 == 0:
        model.eval()
        with torch.no_grad():
            guess = model(test_x).flatten()
        error = (guess - test_y).abs().mean().item()
        pull = torch.corrcoef(torch.stack([guess, test_y]))[0, 1].item()
        model.train()
        print(
            f"step {step + 1:4d}/{STEPS} loss {loss.item():.4f} (first {started_with:.3f}) "
            f"test mae {error:.4f} corr {pull:+.3f} range of answers "
            f"{guess.min():+.2f} to {guess.max():+.2f}"
        )
