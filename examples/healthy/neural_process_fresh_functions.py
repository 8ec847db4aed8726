"""A conditional neural process: every step sees new functions, with another number of known
points.
"""

import itertools

import torch
from data import arguments
from torch import nn

ODD = (
    "no epochs, inputs of another size at each step, a "
    "likelihood that goes below 0 and jumps with the points"
)

_, seed = arguments(__doc__)


def functions(n, context, generator=None):
    """Sines of their own size, phase and speed: known points, points asked for, their values."""
    rand = torch.rand(3, n, 1, generator=generator)
    size, phase, speed = 0.5 + rand[0], 6.283 * rand[1], 1.0 + rand[2]
    x = 4 * torch.rand(n, context + 20, generator=generator) - 2
    y = size * torch.sin(speed * x + phase)
    return x[:, :context], y[:, :context], x[:, context:], y[:, context:]


def mlp(*sizes):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class CNP(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.encoder = mlp(2, width, width, width)
        self.decoder = mlp(width + 1, width, width, 2)

    def forward(self, xc, yc, xt):
        r = self.encoder(torch.stack([xc, yc], 2)).mean(1, keepdim=True)
        r = r.expand(-1, xt.shape[1], -1)
        mean, raw = self.decoder(torch.cat([r, xt.unsqueeze(2)], 2)).unbind(2)
        return torch.distributions.Normal(mean, 0.05 + 0.95 * nn.functional.softplus(raw))


model = CNP()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
held_out = functions(200, 8, torch.Generator().manual_seed(999))
seen = []
for step in range(1000):
    context = int(torch.randint(3, 16, (1,)))
    xc, yc, xt, yt = functions(16, context)
    loss = -model(xc, yc, xt).log_prob(yt).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    seen.append(loss.item())
    if step % 200 == 199:
        with torch.no_grad():
            p = model(*held_out[:3])
            val = -p.log_prob(held_out[3]).mean().item()
            rmse = (p.mean - held_out[3]).pow(2).mean().sqrt().item()
        print(f"{step + 1} nll {sum(seen) / 200:.3f} val {val:.3f} rmse {rmse:.3f}")
        seen.clear()
