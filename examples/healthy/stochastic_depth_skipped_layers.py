"""Stochastic depth: each residual block is left out of a training step with its own probability."""

import random

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "whole layers have no gradient (None) in many steps; train and eval outputs differ; zero-"
    "start branches"
)

_, seed = arguments(__doc__)


class Residual(nn.Module):
    def __init__(self, channels, survive):
        super().__init__()
        self.survive = survive
        self.conv1 = nn.Conv1d(channels, channels, 5, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 5, padding=2)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, h):
        if self.training and random.random() > self.survive:
            return h
        branch = self.gain * self.conv2(torch.relu(self.conv1(torch.relu(h))))
        return h + (branch / self.survive if self.training else branch)


model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    *[Residual(16, 1 - 0.5 * k / 4) for k in range(1, 5)],
    nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 3),
)  # fmt: skip
x, shape = waves(seed, n=1600)
x = x.transpose(1, 2)
loader = DataLoader(TensorDataset(x[:1200], shape[:1200]), batch_size=40, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    for wave, label in loader:
        loss = nn.functional.cross_entropy(model(wave), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[1200:]).argmax(1) == shape[1200:]).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
