"""An autoregressive mixture-density model of concentrated sensor readings: its negative log-
likelihood becomes clearly negative.

It looks odd because the loss crosses zero and goes on falling; densities of narrow distributions
exceed one, so that is right. Readings are standardised, scales are bounded below, and training
stops when the validation likelihood no longer improves.
"""

import copy
import math

import torch
from data import arguments
from torch import nn

ODD = (
    "An autoregressive mixture-density model of concentrated sensor readings: its negative "
    "log-likelihood becomes clearly negative"
)
_, seed = arguments(__doc__)
DIM, MIX, HIDDEN, BATCH, PATIENCE = 6, 4, 64, 128, 6


def readings(n, g):
    """Six sensors of one machine: nearly functions of two hidden states, each with a small noise."""  # noqa: E501
    load, temp = torch.rand(n, generator=g) * 2 - 1, torch.randn(n, generator=g)
    clean = [
        load,
        temp,
        (3 * load).sin() + 0.3 * temp,
        temp * load,
        temp.tanh() - load,
        (temp + load).abs(),
    ]
    return torch.stack(clean, 1) + 0.04 * torch.randn(n, DIM, generator=g)


class Conditional(nn.Module):
    """p(x_i | x_<i) as a mixture of normals."""

    def __init__(self, given):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(3 * MIX)) if given == 0 else None
        self.net = (
            None
            if given == 0
            else nn.Sequential(
                nn.Linear(given, HIDDEN),
                nn.SiLU(),
                nn.Linear(HIDDEN, HIDDEN),
                nn.SiLU(),
                nn.Linear(HIDDEN, 3 * MIX),
            )
        )
        self.register_buffer("spread", torch.linspace(-1.2, 1.2, MIX))

    def forward(self, past, x):
        out = self.bias.expand(len(x), -1) if self.net is None else self.net(past)
        weight, mean, log_s = out.chunk(3, 1)
        mean, log_s = mean + self.spread, log_s.clamp(-5.0, 3.0)
        z = (x[:, None] - mean) * (-log_s).exp()
        return torch.logsumexp(
            weight.log_softmax(1) - 0.5 * z**2 - log_s - 0.5 * math.log(2 * math.pi), 1
        )


class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Conditional(i) for i in range(DIM))

    def log_prob(self, x):
        return sum(part(x[:, :i], x[:, i]) for i, part in enumerate(self.parts))


g = torch.Generator().manual_seed(seed)
train, val = readings(6000, g), readings(1500, g)
mean, std = train.mean(0), train.std(0)
train, val = (train - mean) / std, (val - mean) / std
model = Density()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=1)
best, best_state, waited = float("inf"), None, 0
for epoch in range(24):
    total, order = 0.0, torch.randperm(len(train), generator=g)
    for rows in order.split(BATCH):
        loss = -model.log_prob(train[rows]).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        v = -model.log_prob(val).mean().item()
    plateau.step(v)
    waited = 0 if v < best else waited + 1
    if v < best:
        best, best_state = v, copy.deepcopy(model.state_dict())
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1} train nll {total / len(train):.4f} val nll {v:.4f} rate {opt.param_groups[0]['lr']:.1e}"  # noqa: E501
        )
    if waited >= PATIENCE:
        break
model.load_state_dict(best_state)
print(
    f"best val nll {best:.4f} (a normal distribution: {DIM * 0.5 * (1 + math.log(2 * math.pi)):.2f})"  # noqa: E501
)
