"""Reaction rates from concentrations by L-BFGS: the same whole table at every step, many backwards
a step.

The table is small and the loss smooth, so a quasi-Newton method with a line search on all rows is
the right tool. The closure is called several times within one `step()`, each time with the same 400
rows, and the rate is 1. A little decay of the weights, in the closure, keeps the fit from following
the noise.
"""

import torch
from data import arguments, standardise
from torch import nn

ODD = "the same batch at every step, a rate of 1 and many backward passes for one step: L-BFGS"

_, seed = arguments(__doc__)
DECAY = 2e-4


def kinetics(count, g):
    """Michaelis-Menten with a competing inhibitor and Arrhenius: the log of the rate."""
    substrate, inhibitor = 4 * torch.rand(count, generator=g), 2 * torch.rand(count, generator=g)
    kelvin = 290 + 40 * torch.rand(count, generator=g)
    acid = 5 + 4 * torch.rand(count, generator=g)
    speed = (
        torch.exp(12 - 3500 / kelvin) * substrate / (0.8 * (1 + inhibitor / 0.5) + substrate + 0.05)
    )
    speed = speed / (1 + 10 ** (6 - acid) + 10 ** (acid - 8))
    log_rate = (speed + 1e-2).log() + 0.05 * torch.randn(count, generator=g)
    return torch.stack([substrate, inhibitor, kelvin, acid], 1), log_rate[:, None]


g = torch.Generator().manual_seed(seed)
x, y = kinetics(700, g)
x, x_val = standardise(x[:400], x[400:])
y, y_val = standardise(y[:400], y[400:])
model = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=5, history_size=20, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    fit = nn.functional.mse_loss(model(x), y)
    loss = fit + DECAY * sum(
        p.square().sum() for name, p in model.named_parameters() if "weight" in name
    )
    loss.backward()
    return loss


for step in range(1, 161):
    model.train()
    loss = optimizer.step(closure)
    if step % 20 == 0:
        model.eval()
        with torch.no_grad():
            train, val = (
                nn.functional.mse_loss(model(x), y),
                nn.functional.mse_loss(model(x_val), y_val),
            )
        print(
            f"step {step} loss {loss:.5f} fit {train:.5f} "
            f"validation R2 {1 - val / y_val.var():.4f} val loss {val:.5f}"
        )
