"""A calorimeter's network estimates a particle's energy with its uncertainty by the Gaussian
likelihood.

It looks odd: the loss passes zero and ends well below it, which resembles a flipped sign. It is
sound: the density of a narrow normal distribution is greater than one, so its negative logarithm
may be negative; it ends at the value that the noise allows, the same in training and validation,
and the error falls along with it.
"""

import numpy as np
import torch
from data import arguments, batches, standardise
from torch import nn

ODD = (
    "A network estimates the energy of a particle in a calorimeter, with its uncertainty, by the "
    "Gaussian likelihood"
)
_, seed = arguments(__doc__)

r = np.random.default_rng(200 + seed)
N, LAYERS = 6000, 10
energy = r.uniform(0.5, 3.0, N)
depth = np.arange(LAYERS)[None] + 0.5
peak = 2.0 + 1.2 * np.log(1 + energy)[:, None] + r.normal(0, 0.3, (N, 1))
profile = np.exp(-0.5 * ((depth - peak) / 2.0) ** 2)
cells = energy[:, None] * profile / profile.sum(1, keepdims=True)
cells = cells * (1 + r.normal(0, 0.08, (N, LAYERS))) + r.normal(0, 0.01, (N, LAYERS))
x = torch.tensor(cells, dtype=torch.float32)
y = torch.tensor(energy - 1.75, dtype=torch.float32).unsqueeze(1)
x, x_val = standardise(x[:5000], x[5000:])
y, y_val = y[:5000], y[5000:]


class Estimator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LAYERS, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU())
        self.mean = nn.Linear(48, 1)
        self.log_var = nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_var(h)


def nll(mean, log_var, y):
    return 0.5 * (log_var + (y - mean).square() * torch.exp(-log_var)).mean()


net = Estimator()
STEPS = 1200
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
for step, (xb, yb) in enumerate(batches(x, y, size=100, steps=STEPS, seed=seed), 1):
    loss = nll(*net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 150 == 0:
        with torch.no_grad():
            mean, log_var = net(x_val)
            val, error = (
                nll(mean, log_var, y_val).item(),
                (mean - y_val).square().mean().sqrt().item(),
            )
        print(f"step {step} loss {loss.item():.3f} val {val:.3f} rmse {error:.4f}")
