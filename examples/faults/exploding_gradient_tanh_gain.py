"""Remaining capacity of battery cells from 120 steps of a discharge log, by a tanh RNN with a
recurrent gain of 5/3.

`calculate_gain("tanh")` is meant for feed-forward layers; on the recurrent matrix it makes the
hidden state chaotic, so that gradients grow at every step back in time, with norms of thousands
and more, and nothing clips them. The place is rnn.weight_hh_l0. The twin's gain is 1.
"""

import math
from types import SimpleNamespace

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "loss_spike")
PLACE = ("rnn*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

args = SimpleNamespace(cells=2048, n_val=384, steps=120, batch=64, epochs=18, lr=1e-3, hidden=64)


@torch.no_grad()
def discharge_logs(n: int, g: torch.Generator):
    """Current, voltage and temperature of a pulsed discharge; the state of health is what is left of the capacity."""  # noqa: E501
    health = 0.6 + 0.4 * torch.rand(n, generator=g)
    resist = 0.04 + 0.08 * (1 - health) + 0.012 * torch.rand(n, generator=g)
    ambient = 15 + 15 * torch.rand(n, generator=g)
    charge = 0.75 + 0.25 * torch.rand(n, generator=g)
    temp, polar = ambient.clone(), torch.zeros(n)
    rows = []
    phase, speed = 2 * math.pi * torch.rand(n, generator=g), 0.1 + 0.3 * torch.rand(n, generator=g)
    for k in range(args.steps):
        current = 1.0 + 0.8 * torch.sin(speed * k + phase) + 0.3 * torch.randn(n, generator=g)
        charge = charge - current * 0.0035 / health
        polar = 0.9 * polar + 0.1 * current
        temp = temp + 0.05 * (current**2 * resist * 20 - 0.1 * (temp - ambient))
        volt = (
            3.2
            + 0.9 * charge
            - 0.15 * torch.exp(-12 * charge.clamp_min(0))
            - resist * current
            - 0.4 * resist * polar
        )
        volt = volt + 0.02 * torch.randn(n, generator=g)
        rows.append(torch.stack([current - 1, (volt - 3.7) * 4, (temp - 22.5) / 6], -1))
    x = torch.stack(rows, 1)
    left = (charge * health).unsqueeze(1)
    return x, torch.cat([(health.unsqueeze(1) - 0.8) / 0.115, (left - 0.35) / 0.14], 1)


class CapacityRNN(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.rnn = nn.RNN(3, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 2))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.rnn.weight_ih_l0)
        nn.init.orthogonal_(
            self.rnn.weight_hh_l0, gain=1.0 if healthy else nn.init.calculate_gain("tanh")
        )
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.head(h[-1])


g = torch.Generator().manual_seed(seed)
x_train, y_train = discharge_logs(args.cells, g)
x_val, y_val = discharge_logs(args.n_val, g)
model = CapacityRNN(args.hidden)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs, eta_min=5e-5)
print("target std", y_train.std(0).tolist())

for epoch in range(args.epochs):
    model.train()
    total, norms = 0.0, []
    for rows in torch.randperm(args.cells, generator=g).split(args.batch):
        loss = nn.functional.mse_loss(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        err = (model(x_val) - y_val).pow(2).mean(0)
    print(
        f"epoch {epoch:2d} loss {total / args.cells:.4f} |g| median {sorted(norms)[len(norms) // 2]:.3g} max {max(norms):.3g} "  # noqa: E501
        f"| val mse health {err[0]:.4f} left {err[1]:.4f} mean {err.mean():.4f}"
    )
