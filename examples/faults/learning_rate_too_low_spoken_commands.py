"""A small audio transformer for spoken commands; the learning rate is the square of the one
wanted.

LambdaLR multiplies the optimizer's rate by what the function gives. The user's function gives the
rate itself instead of a factor, so that the steps are taken with 2e-3 * 2e-3 = 4e-6. The place is
the schedule of the optimizer.
"""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ("schedule_collapsed",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
args = SimpleNamespace(
    lr=2e-3, warmup=40, iters=400, batch=40, frames=36, mels=20, words=10, dim=48, heads=4, layers=2
)

# ---------------------------------------------------------------- data: formant tracks of made-up words  # noqa: E501
g = torch.Generator().manual_seed(seed)
FORMANTS = torch.rand(args.words, 3, 4, generator=g) * 0.8 + 0.1  # word, formant, knots in time


def speak(n):
    y = torch.randint(0, args.words, (n,), generator=g)
    knots = FORMANTS[y] + 0.13 * torch.randn(n, 3, 4, generator=g)
    track = F.interpolate(knots, size=args.frames, mode="linear", align_corners=True)
    shift = torch.randint(-6, 7, (n,), generator=g)
    track = torch.stack([torch.roll(t, int(s), -1) for t, s in zip(track, shift, strict=False)])
    mel = torch.linspace(0, 1, args.mels).view(1, 1, -1, 1)
    loud = torch.tensor([1.0, 0.8, 0.5]).view(1, 3, 1, 1) * (
        0.7 + 0.6 * torch.rand(n, 1, 1, 1, generator=g)
    )
    spec = (loud * torch.exp(-((mel - track.unsqueeze(2)) ** 2) / 0.006)).sum(1)
    spec = torch.log(spec + 0.2 * torch.rand(spec.shape, generator=g) + 0.05)
    return ((spec + 1.6) / 0.8).transpose(1, 2), y


x_train, y_train = speak(3000)
x_val, y_val = speak(600)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class CommandFormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv1d(args.mels, args.dim, 3, stride=2, padding=1)
        self.pos = nn.Parameter(torch.randn(1, args.frames // 2, args.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(args.dim, args.heads) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.dim)
        self.head = nn.Linear(args.dim, args.words)

    def forward(self, x):
        x = self.embed(x.transpose(1, 2)).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


model = CommandFormer()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)


def rate_at(it):
    """Linear warm-up, then a cosine to a tenth."""
    peak = 1.0 if healthy else args.lr
    if it < args.warmup:
        return peak * (it + 1) / args.warmup
    done = (it - args.warmup) / (args.iters - args.warmup)
    return peak * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_at)

for it in range(args.iters):
    model.train()
    ix = torch.randint(0, len(x_train), (args.batch,))
    logits = model(x_train[ix] + 0.05 * torch.randn(args.batch, args.frames, args.mels))
    loss = F.cross_entropy(logits, y_train[ix], label_smoothing=0.05)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if (it + 1) % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"iter {it + 1}: loss {loss.item():.4f}, val loss {F.cross_entropy(out, y_val).item():.4f}, val acc {acc.item():.3f}"  # noqa: E501
        )
