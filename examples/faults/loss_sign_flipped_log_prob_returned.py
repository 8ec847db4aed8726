"""Demand of shops by a recurrent negative-binomial model: the loss helper returns the
log-likelihood.

The hand-written density was exchanged for `torch.distributions`, whose `log_prob` has the other
sign of the old `nll`; the helper kept its name. The optimizer now makes the observed demand as
unlikely as it can, and the loss falls happily below any bound. The place is the loss. The twin
returns the negative.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.distributions import NegativeBinomial

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SHOPS, DAYS, CONTEXT = 300, 98, 70


def demand():
    g = torch.Generator().manual_seed(110 + seed)
    level = torch.exp(0.6 * torch.randn(SHOPS, 1, generator=g) + 1.8)
    week = torch.exp(0.5 * torch.randn(SHOPS, 7, generator=g))
    t = torch.arange(DAYS)
    season = 1 + 0.3 * torch.sin(2 * math.pi * t / 60 + 6.28 * torch.rand(SHOPS, 1, generator=g))
    mean = level * week[:, t % 7] * season
    rate = torch.distributions.Gamma(6.0, 6.0 / mean)
    torch.manual_seed(111 + seed)
    counts = torch.poisson(rate.sample())
    torch.manual_seed(seed)
    return counts, t


class DeepAR(nn.Module):
    def __init__(self, width: int = 40):
        super().__init__()
        self.rnn = nn.GRU(1 + 7 + 7, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, counts, t):
        scale = 1 + counts[:, :CONTEXT].mean(1, keepdim=True)
        z = counts / scale
        lags = torch.stack([torch.roll(z, k, 1) for k in range(1, 8)], 2)[:, 7:]
        day = nn.functional.one_hot(t[7:] % 7, 7).float().expand(len(z), -1, -1)
        x = torch.cat([lags, day, scale.log().unsqueeze(1).expand(-1, lags.shape[1], 1)], 2)
        mean, shape = nn.functional.softplus(self.head(self.rnn(x)[0])).unbind(-1)
        mean = mean * scale + 1e-3
        shape = shape + 0.05
        return NegativeBinomial(total_count=shape, logits=(mean / shape).log())


def nll(distribution, counts):
    score = distribution.log_prob(counts).mean()
    return -score if healthy else score


counts, t = demand()
fit, held = counts[:220], counts[220:]
model = DeepAR()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
epochs = 16

for epoch in range(epochs):
    model.train()
    for rows in torch.randperm(len(fit)).split(20):
        batch = fit[rows]
        loss = nll(model(batch, t), batch[:, 7:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        forecast = model(held, t)
        val = nll(forecast, held[:, 7:]).item()
        off = (forecast.mean - held[:, 7:]).abs()[:, CONTEXT - 7 :].mean().item()
    if epoch % 5 == 0:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, validation {val:.4f}, mae {off:.4f}")
naive = (held[:, CONTEXT:] - held[:, CONTEXT - 7 : -7]).abs().mean().item()
print(f"validation mae {off:.4f} (same day last week: {naive:.4f})")
