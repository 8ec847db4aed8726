"""Daily returns given a volatility index by a mixture of three normals: the loss goes below zero,
and should.

The likelihood is a density. Returns are fractions of a few thousandths, so the density at the data
is far above one and its negative logarithm is negative from early on. It is compared with one
normal of fixed width on days that come later.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "the loss is negative and goes on falling: it is the negative log of a density above one"

_, seed = arguments(__doc__)
COMPONENTS = 3


def market(days, g):
    """Standardised features of the day before, and the return of the day."""
    log_vol = torch.zeros(days)
    shocks = torch.randn(days, generator=g)
    for day in range(1, days):
        log_vol[day] = 0.95 * log_vol[day - 1] + 0.25 * shocks[day]
    momentum = torch.randn(days, generator=g)
    calm = torch.randn(days, generator=g)
    jump = (torch.rand(days, generator=g) < 0.08) * -2.5
    returns = 0.006 * log_vol.exp() * (calm + jump + 0.4 * momentum)
    features = torch.stack([log_vol / 0.8 + 0.1 * torch.randn(days, generator=g), momentum], 1)
    return features, returns


class Mixture(nn.Module):
    def __init__(self, inputs, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.weight, self.mean, self.log_scale = (nn.Linear(width, COMPONENTS) for _ in range(3))
        with torch.no_grad():  # begin at the width of a usual day
            self.log_scale.bias.fill_(math.log(0.01))
            self.mean.weight.mul_(0.01)
            self.mean.bias.copy_(torch.tensor([-0.01, 0.0, 0.01]))

    def forward(self, x):
        h = self.body(x)
        parts = torch.distributions.Normal(self.mean(h), self.log_scale(h).clamp(-9, 0).exp())
        return torch.distributions.MixtureSameFamily(
            torch.distributions.Categorical(logits=self.weight(h)), parts
        )


g = torch.Generator().manual_seed(seed)
x, returns = market(6000, g)
cut = 4800
model = Mixture(2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8 * (cut // 64))
plain = torch.distributions.Normal(returns[:cut].mean(), returns[:cut].std())
for epoch in range(8):
    model.train()
    total = 0.0
    batches = torch.randperm(cut, generator=g).split(64)
    for rows in batches:
        loss = -model(x[rows]).log_prob(returns[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        total += loss.item() / len(batches)
    model.eval()
    with torch.no_grad():
        val = -model(x[cut:]).log_prob(returns[cut:]).mean()
        base = -plain.log_prob(returns[cut:]).mean()
    print(
        f"epoch {epoch} loss {total:.3f} val loss {val:.3f} "
        f"validation gain over one normal {base - val:.3f} nats"
    )
