"""Learning to sort with a Sinkhorn layer: the loss gets rows (and columns) that already sum
to 1."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "nll_loss gets the output of twenty normalisations, whose rows and columns sum to 1 in "
    "exp; the head's scores are divided by 0.3"
)

_, seed = arguments(__doc__)
N = 6


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.item = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32))
        self.place = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, N))

    def forward(self, numbers):
        h = self.item(numbers.unsqueeze(-1))
        others = h.amax(1, keepdim=True).expand_as(h)
        log_p = self.place(torch.cat([h, others], -1)) / 0.3
        for _ in range(20):
            log_p = log_p - log_p.logsumexp(1, keepdim=True)
            log_p = log_p - log_p.logsumexp(2, keepdim=True)
        return log_p


def batch(n):
    numbers = torch.rand(n, N)
    return (numbers - 0.5) / 0.29, numbers.argsort(1).argsort(1)


sorter = Sorter()
optimizer = torch.optim.Adam(sorter.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500, eta_min=1e-4)
held, held_rank = batch(300)
for step in range(500):
    numbers, rank = batch(64)
    loss = F.nll_loss(sorter(numbers).flatten(0, 1), rank.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(sorter.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        with torch.no_grad():
            out = sorter(held)
            val = F.nll_loss(out.flatten(0, 1), held_rank.flatten()).item()
print(
    f"loss {loss.item():.3f}, validation loss {val:.3f}, places "
    f"right {(out.argmax(2) == held_rank).float().mean():.3f}"
)
