"""Cosine schedule with warm restarts: each time the rate jumps back up, the loss jumps as well,
and the end is better for it.

The person sees the loss rise again at steps 150 and 450 and fears that training breaks down. The
schedule puts the rate back to its start there; by the end of each cycle the loss is lower.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

ODD = (
    "the loss jumps up twice in mid-training: at each warm restart the learning rate goes back from"
    " nearly 0 to its maximum, on purpose, and each cycle ends lower than the one before"
)
_, seed = arguments(__doc__)

FIRST_CYCLE, STEPS = 150, 1050


def soil(count, rng):
    """Moisture of soil by bands of reflected light, temperature and slope."""
    moisture, organic = rng.beta(2, 3, count), rng.beta(2, 5, count)
    band = np.linspace(0, 1, 16)
    brightness = 0.5 - 0.3 * np.sqrt(moisture) - 0.2 * organic
    dip = np.exp(-0.5 * ((band - 0.7) / 0.08) ** 2)
    light = brightness[:, None] * (1 + 0.4 * band) - 0.25 * moisture[:, None] * dip
    warmth, slope = rng.normal(15, 6, count), rng.gamma(1, 8, count)
    light = light * (1 + 0.01 * (warmth[:, None] - 15)) * np.cos(np.radians(slope))[:, None]
    light += rng.normal(0, 0.008, light.shape)
    return np.column_stack([light, warmth, slope]), moisture


def net(inputs):
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )


def main():
    x, y = soil(3000, np.random.default_rng(seed))
    x = torch.tensor((x - x[:2400].mean(0)) / x[:2400].std(0), dtype=torch.float32)
    y = torch.tensor((y - y[:2400].mean()) / y[:2400].std(), dtype=torch.float32)
    model = net(x.shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=FIRST_CYCLE, T_mult=2, eta_min=1e-4)
    recent = []
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, 2400, (48,))
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        recent.append(loss.item())
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                val = nn.functional.mse_loss(model(x[2400:]).squeeze(1), y[2400:]).item()
            model.train()
            rate = optimizer.param_groups[0]["lr"]
            print(f"step {step:4d}  train {np.mean(recent):.4f}  val {val:.4f}  lr {rate:.4f}")
            recent.clear()


if __name__ == "__main__":
    main()
