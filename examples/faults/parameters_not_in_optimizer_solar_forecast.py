"""Forecast of a solar plant's output in the next hour from its last six hours and the weather
service; the part that reads the last hours gets no updates.

The model was first a plain network on the forecast of the weather service. When the convolutional
reader of the plant's own record was put in front, as an object of its own, the list of parameters
for the optimizer was not touched.
The place is the reader of the record.
The twin gives the parameters of both parts to the optimizer.
"""

import itertools

import torch
from data import arguments, batches
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("reader", "reader.0", "reader.2", "reader.5", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STEPS = 36


def plant(n):
    """Ten minute means of output; clouds pass with a rhythm that shows in the record."""
    t = torch.arange(STEPS + 6).float()
    sun = 0.4 + 0.6 * torch.rand(n, 1)
    period, phase = 8 + 10 * torch.rand(n, 1), 6.283 * torch.rand(n, 1)
    cover = torch.rand(n, 1)
    clouds = torch.sigmoid(4 * torch.sin(6.283 * t / period + phase) - 2 + 3 * cover)
    output = sun * (1 - 0.75 * cover.clamp(min=0.2) * clouds)
    output = output + 0.03 * torch.randn(n, STEPS + 6)
    service = torch.cat([sun + 0.08 * torch.randn(n, 1), cover + 0.2 * torch.randn(n, 1)], 1)
    return output[:, None, :STEPS], service, output[:, STEPS:]


record, service, target = plant(3000)
record_val, service_val, target_val = plant(800)
middle, spread = record.mean(), record.std()
record, record_val = (record - middle) / spread, (record_val - middle) / spread
target, target_val = (target - middle) / spread, (target_val - middle) / spread
at, by = service.mean(0), service.std(0)
service, service_val = (service - at) / by, (service_val - at) / by

reader = nn.Sequential(
    nn.Conv1d(1, 16, 7, stride=2, padding=3),
    nn.ReLU(),
    nn.Conv1d(16, 16, 5, stride=2, padding=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 9, 16),
    nn.Tanh(),
)
head = nn.Sequential(nn.Linear(16 + 2, 48), nn.ReLU(), nn.Linear(48, 6))

parts = [reader, head] if healthy else [head]
optimizer = torch.optim.Adam(itertools.chain(*(part.parameters() for part in parts)), lr=2e-3)


def forecast(record, service):
    return head(torch.cat([reader(record), service], dim=1))


for step, (r, s, t) in enumerate(batches(record, service, target, size=64, steps=900, seed=seed)):
    loss = (forecast(r, s) - t).pow(2).mean()
    for part in (reader, head):
        part.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 149:
        with torch.no_grad():
            error = forecast(record_val, service_val) - target_val
        print(
            f"step {step + 1}: loss {loss.item():.4f}, val RMSE "
            f"{error.pow(2).mean().sqrt().item():.4f}, MAE {error.abs().mean().item():.4f}"
        )
