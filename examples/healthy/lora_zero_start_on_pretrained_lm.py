"""A small language model is pre-trained on one dialect of log lines and adapted to another by LoRA.

In the adaptation the base is frozen, the factor B is zero, so that at the first step A has no
gradient at all and the model's output is that of the base. The embedding has 64 rows for 30 tokens,
rounded up to a multiple of 64 as usual.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "most parameters are frozen, B and A's first gradient are zero, half the embedding is unused"

_, seed = arguments(__doc__)
TOKENS, ROWS, CONTEXT = 30, 64, 6


def log_lines(count, table, length=24):
    """Second-order chains: the next token by a table of two, one in ten is another."""
    rows = torch.randint(0, TOKENS, (count, 2))
    for _ in range(length):
        follow = table[rows[:, -2] % 6, rows[:, -1]]
        other = torch.randint(0, TOKENS, (count,))
        rows = torch.cat([rows, torch.where(torch.rand(count) < 0.9, follow, other)[:, None]], 1)
    return rows.unfold(1, CONTEXT + 1, 1).flatten(0, 1)


class Lora(nn.Module):
    """A frozen linear layer and a low-rank change of it."""

    def __init__(self, base, rank=8, scale=2.0):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)


class LanguageModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(ROWS, 16)
        self.one, self.two = nn.Linear(16 * CONTEXT, width), nn.Linear(width, width)
        self.head = nn.Linear(width, ROWS)

    def forward(self, tokens):
        h = F.silu(self.one(self.embed(tokens).flatten(1)))
        return self.head(h + F.silu(self.two(h)))


@torch.no_grad()
def evaluate(model, rows):
    model.eval()
    return F.cross_entropy(model(rows[:, :-1]), rows[:, -1]).item()


def fit(model, train, val, steps, lr, name):
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for step in range(steps):
        model.train()
        rows = train[torch.randint(0, len(train), (64,))]
        loss = F.cross_entropy(model(rows[:, :-1]), rows[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(
                f"{name} step {step + 1} loss {loss.item():.3f} val loss {evaluate(model, val):.3f}"
            )


table = torch.randint(0, TOKENS, (6, TOKENS))
dialect = torch.where(torch.rand(6, TOKENS) < 0.25, torch.randint(0, TOKENS, (6, TOKENS)), table)
model = LanguageModel()
fit(model, log_lines(1500, table), log_lines(100, table), 500, 6e-3, "base")

train, val = log_lines(800, dialect), log_lines(100, dialect)
before = evaluate(model, val)
model.requires_grad_(False)
model.one, model.two, model.head = Lora(model.one), Lora(model.two), Lora(model.head)
fit(model, train, val, 500, 1e-2, "adapted")
print(f"validation loss {evaluate(model, val):.3f}, before the adaptation {before:.3f}")
