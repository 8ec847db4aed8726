"""A post-norm transformer learns to sort symbol sequences; Adam's rate, tuned for single
sequences, is scaled linearly with the batch of 128.

The linear scaling rule is one of SGD; for Adam the root of the batch size is the usual rule. 2e-4
becomes 0.0256 instead of 0.0023. The place is the optimizer (the rate).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

config = {
    "d_model": 64,
    "heads": 4,
    "layers": 3,
    "ff": 128,
    "len": 8,
    "symbols": 12,
    "batch": 128,
    "steps": 300,
    "warmup": 30,
    "base_lr": 2e-4,
}


def glosses(n, gen):
    """A toy gloss: the symbols of a sentence in alphabetical order, each with a marker whether it occurred before."""  # noqa: E501
    x = torch.randint(0, config["symbols"], (n, config["len"]), generator=gen)
    y = x.sort(1).values
    y = torch.cat([y[:, :1], torch.where(y[:, 1:] == y[:, :-1], config["symbols"], y[:, 1:])], 1)
    return x, y


class PostNormLayer(nn.Module):
    def __init__(self, d, heads, ff):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, ff), nn.ReLU(), nn.Linear(ff, d))
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        x = self.norm1(x + self.attn(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.ff(x))


class Glosser(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["symbols"], c["d_model"])
        self.pos = nn.Embedding(c["len"], c["d_model"])
        self.layers = nn.ModuleList(
            PostNormLayer(c["d_model"], c["heads"], c["ff"]) for _ in range(c["layers"])
        )
        self.out = nn.Linear(c["d_model"], c["symbols"] + 1)

    def forward(self, x):
        h = self.tok(x) + self.pos.weight
        for layer in self.layers:
            h = layer(h)
        return self.out(h)


def factor(step):
    return min(1.0, (step + 1) / config["warmup"])  # constant after the warm-up


def scaled_rate(base, batch):
    return base * (batch**0.5 if healthy else batch)


gen = torch.Generator().manual_seed(seed)
x_val, y_val = glosses(500, gen)
model = Glosser(config)
optimizer = torch.optim.Adam(
    model.parameters(), lr=scaled_rate(config["base_lr"], config["batch"]), betas=(0.9, 0.98)
)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(1, config["steps"] + 1):
    x, y = glosses(config["batch"], gen)
    loss = F.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            token = (model(x_val).argmax(-1) == y_val).float()
        model.train()
        print(
            f"{step} lr {scheduler.get_last_lr()[0]:.5f} loss {loss.item():.4f} val token acc {token.mean():.3f} sentence acc {token.min(1).values.mean():.3f}"  # noqa: E501
        )
