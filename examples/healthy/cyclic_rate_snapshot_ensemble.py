"""Snapshot ensemble: cosine restarts of the rate, a copy of the network at the end of each cycle.

At each restart the rate jumps back up, and the loss with it; that is what makes the snapshots
differ. What counts is the mean of their predictions.
"""

import copy

import torch
from data import arguments, batches, standardise
from torch import nn

ODD = "the rate jumps a hundredfold four times, and the loss with it"

_, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
N = 3200
ocean = torch.rand(N, 6, generator=g)  # temperature, salinity, depth, light, nitrate, current
plankton = torch.sin(4 * ocean[:, 0]) * ocean[:, 3] + 2 * ocean[:, 4] * torch.exp(-2 * ocean[:, 2])
plankton = (
    plankton + 0.5 * (ocean[:, 1] - 0.5).abs() + 0.3 * torch.cos(5 * ocean[:, 5] * ocean[:, 0])
)
plankton = plankton + 0.1 * torch.randn(N, generator=g)
x, x_val = standardise(ocean[:2500], ocean[2500:])
y, y_val = standardise(plankton[:2500, None], plankton[2500:, None])

CYCLES, PER_CYCLE = 4, 200
model = nn.Sequential(nn.Linear(6, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True
)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    optimizer, T_0=PER_CYCLE, eta_min=1e-3
)
snapshots = []


@torch.no_grad()
def val_mse(models):
    for m in models:
        m.eval()
    return nn.functional.mse_loss(torch.stack([m(x_val) for m in models]).mean(0), y_val).item()


recent = []
for step, (rows, target) in enumerate(
    batches(x, y, size=64, steps=CYCLES * PER_CYCLE, seed=seed), 1
):
    model.train()
    loss = nn.functional.mse_loss(model(rows), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 50 == 0:
        print(
            f"step {step} lr {schedule.get_last_lr()[0]:.4f} train {sum(recent) / 50:.4f} "
            f"val {val_mse([model]):.4f}"
        )
        recent.clear()
    if step % PER_CYCLE == 0:
        snapshots.append(copy.deepcopy(model))
        print(f"snapshot {len(snapshots)}: ensemble {val_mse(snapshots):.4f}")
