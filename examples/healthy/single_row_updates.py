"""A machine's energy use, learnt online: each step sees one single row, as it arrives.

The rows come one by one from the machine, are used once and thrown away. The rate is small and an
average of the weights is what is used in the end.
"""

import torch
from data import arguments
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

ODD = "batches of one row, whose losses jump by a factor of a hundred from step to step"

_, seed = arguments(__doc__)


def observe(n):
    load, speed, heat = torch.rand(n) * 2 - 1, torch.rand(n) * 2 - 1, torch.randn(n)
    energy = load + 0.8 * speed**2 + 0.5 * load * speed + 0.2 * heat - 0.27
    return torch.stack([1.7 * load, 1.7 * speed, heat], 1), energy + 0.15 * torch.randn(n)


model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x_val, y_val = observe(800)

recent = 0.0
for step in range(1, 1501):
    row, energy = observe(1)
    loss = (model(row).squeeze(1) - energy).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    recent += loss.item() / 250
    if step % 250 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(average(x_val).squeeze(1), y_val).item()
        print(f"after {step} rows: lately {recent:.4f}, validation {val:.4f}")
        recent = 0.0
