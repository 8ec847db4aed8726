"""A translator of dates takes the warm-up of 10,000 steps from a large recipe, and trains for 350.

The training ends while the rate has come to a thirtieth of what it should be. The place is the
optimizer. The loss falls all the same (silent), slowly and not far. Not exact.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ("stopped_too_early",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CONFIG = {
    "lr": 5e-3,
    "warmup_steps": 40 if healthy else 10_000,
    "steps": 350,
    "batch_size": 48,
    "hidden": 64,
}
MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
SIGNS = "_abcdefghijklmnopqrstuvwxyz0123456789 ,-"
NUMBER = {c: i for i, c in enumerate(SIGNS)}


def example(r):
    day, month, year = r.randint(1, 28), r.randrange(12), r.randint(1950, 2029)
    said = r.choice((f"{day} {MONTHS[month]} {year}", f"{MONTHS[month][:3]} {day}, {year}"))
    return said.ljust(20, "_"), f"{year}-{month + 1:02d}-{day:02d}"


def tensors(n, r):
    said, wanted = zip(*(example(r) for _ in range(n)), strict=False)
    return tuple(
        torch.tensor([[NUMBER[c] for c in row] for row in part]) for part in (said, wanted)
    )


class DateReader(nn.Module):
    """A bidirectional GRU reads; each of the ten places of the answer looks at what it needs."""

    def __init__(self, hidden):
        super().__init__()
        self.embed = nn.Embedding(len(SIGNS), 24)
        self.encoder = nn.GRU(24, hidden // 2, bidirectional=True, batch_first=True)
        self.queries = nn.Parameter(torch.randn(10, hidden) * 0.3)
        self.key = nn.Linear(hidden, hidden)
        self.head = nn.Sequential(nn.Linear(2 * hidden, 96), nn.ReLU(), nn.Linear(96, len(SIGNS)))

    def forward(self, said):
        h, _ = self.encoder(self.embed(said))
        scores = self.queries @ self.key(h).transpose(1, 2) / h.shape[-1] ** 0.5
        seen = scores.masked_fill(said.eq(0)[:, None], -1e9).softmax(-1) @ h
        return self.head(torch.cat([seen, self.queries.expand_as(seen)], -1))


def warmup_linear(step):
    return min(1.0, (step + 1) / CONFIG["warmup_steps"])


r = random.Random(seed)
said, wanted = tensors(5000, r)
said_val, wanted_val = tensors(300, r)
model = DateReader(CONFIG["hidden"])
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"])
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_linear)
for step in range(1, CONFIG["steps"] + 1):
    rows = torch.randint(0, len(said), (CONFIG["batch_size"],))
    loss = F.cross_entropy(model(said[rows]).flatten(0, 1), wanted[rows].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 70 == 0:
        model.eval()
        with torch.no_grad():
            right = model(said_val).argmax(-1) == wanted_val
        model.train()
        print(
            f"step {step} lr {scheduler.get_last_lr()[0]:.1e} loss {loss.item():.3f} "
            f"held-out signs {right.float().mean():.3f}"
        )
