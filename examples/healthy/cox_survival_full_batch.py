"""A neural Cox model: the negative partial likelihood of censored survival times, full batch."""

import torch
from data import arguments
from torch import nn

ODD = "the loss starts near ln n - 1 and falls by a few tenths only; every step has the same batch"

_, seed = arguments(__doc__)


def patients(n):
    x = torch.randn(n, 8)
    risk = 1.2 * x[:, 0] - 0.8 * x[:, 1] + 0.9 * x[:, 2] * x[:, 3]
    time = -torch.log(torch.rand(n)) / torch.exp(risk)
    end = -torch.log(torch.rand(n)) * 2.0
    order = torch.minimum(time, end).argsort(descending=True)
    return x[order], torch.minimum(time, end)[order], (time <= end)[order].float()


def partial_likelihood(score, event):
    """Rows sorted by falling time: who is still at risk stands above."""
    return -((score - score.logcumsumexp(0)) * event).sum() / event.sum()


def concordance(score, time, event):
    earlier = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    return (score[:, None] > score[None, :])[earlier].float().mean().item()


x, time, event = patients(1500)
x_val, time_val, event_val = patients(500)
net = nn.Sequential(nn.Linear(8, 24), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(24, 1, bias=False))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.05)
for step in range(250):
    net.train()
    optimizer.zero_grad()
    loss = partial_likelihood(net(x).squeeze(1), event)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        net.eval()
        with torch.no_grad():
            score = net(x_val).squeeze(1)
            val_loss = partial_likelihood(score, event_val).item()
c = concordance(score, time_val, event_val)
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, concordance {c:.3f}")
