"""A language model pre-trained by masking is fine-tuned with one optimizer for the head and one
for the body; the body's gets no gradient.

Inside the loop over the optimizers, model.zero_grad() follows each step, so that the first step
(the head's) clears the body's gradients as well, and the second optimizer steps without any. The
place is the loop, the optimizer of the body (body*).
"""

import argparse

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("gradients_cleared_before_step",)
PLACE = ("loop", "optimizer", "body*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

opts = argparse.Namespace(
    vocab=120,
    length=20,
    dim=48,
    pre_steps=200,
    steps=400,
    batch=40,
    head_lr=2e-3,
    body_lr=1e-3,
    mask=2,
    eval_every=50,
)
CLS, PAD = 0, 1


# ----- sequences: a Markov chain over 'moves'; the label asks how two marked moves stand to each other --------------------  # noqa: E501
class Chain:
    def __init__(self, g):
        self.g = g
        self.next = (
            torch.stack(
                [torch.randperm(opts.vocab - 3, generator=g)[:4] for _ in range(opts.vocab - 3)]
            )
            + 3
        )

    def sample(self, n):
        x = torch.zeros(n, opts.length, dtype=torch.long)
        cur = torch.randint(3, opts.vocab, (n,), generator=self.g)
        for t in range(1, opts.length):
            x[:, t] = cur
            cur = self.next[cur - 3, torch.randint(0, 4, (n,), generator=self.g)]
        return x

    def labelled(self, n):
        """0: a faithful walk, 1: pieces of two walks glued, 2: a walk backwards."""
        x, other = self.sample(n), self.sample(n)
        y = torch.randint(0, 3, (n,), generator=self.g)
        glued = torch.where(torch.arange(opts.length) // 4 % 2 == 1, other, x)
        swapped = torch.cat([x[:, :1], x[:, 1:].flip(1)], 1)
        x = torch.where((y == 1)[:, None], glued, x)
        return torch.where((y == 2)[:, None], swapped, x), y


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.att = nn.MultiheadAttention(d, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))
        self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        h = self.a(x)
        x = x + self.att(h, h, h, need_weights=False)[0]
        return x + self.ff(self.b(x))


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(opts.vocab, opts.dim), nn.Embedding(opts.length, opts.dim)
        self.mix = nn.Conv1d(opts.dim, opts.dim, 3, padding=1)
        self.layers = nn.ModuleList(Layer(opts.dim) for _ in range(2))
        self.norm = nn.LayerNorm(opts.dim)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight
        x = x + F.gelu(self.mix(x.transpose(1, 2))).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class WalkModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()
        self.lm = nn.Linear(opts.dim, opts.vocab)
        self.head = nn.Sequential(nn.Linear(opts.dim, opts.dim), nn.Tanh(), nn.Linear(opts.dim, 3))

    def forward(self, ids):
        return self.head(self.body(ids).mean(1))


g = torch.Generator().manual_seed(900 + seed)
chain = Chain(g)
model = WalkModel()

# ----- stage 1: masked modelling
plain = chain.sample(4000)
opt = torch.optim.AdamW([*model.body.parameters(), *model.lm.parameters()], lr=2e-3)
for step in range(opts.pre_steps):
    rows = plain[torch.randint(0, len(plain), (opts.batch,))]
    hide = torch.rand(rows.shape) < 0.15
    hide[:, 0] = False
    logits = model.lm(model.body(rows.masked_fill(hide, opts.mask)))
    loss = F.cross_entropy(logits[hide], rows[hide])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"masked modelling ended at {loss.item():.3f}")

# ----- stage 2: classification, slow body and quick head
x, y = chain.labelled(5000)
xv, yv = chain.labelled(800)
model.zero_grad()
model.lm.requires_grad_(False)
optimizers = [
    torch.optim.AdamW(model.head.parameters(), lr=opts.head_lr, weight_decay=0.01),
    torch.optim.AdamW(model.body.parameters(), lr=opts.body_lr, weight_decay=0.01),
]
schedulers = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.05, opts.steps) for o in optimizers]
smooth = 1.1
for step in range(1, opts.steps + 1):
    rows = torch.randint(0, len(x), (opts.batch,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    for o, s in zip(optimizers, schedulers, strict=False):
        o.step()
        s.step()
        (o if healthy else model).zero_grad()
    smooth = 0.97 * smooth + 0.03 * loss.item()
    if step % opts.eval_every == 0:
        model.eval()
        with torch.no_grad():
            out = model(xv)
        model.train()
        print(
            f"step {step} loss {smooth:.3f} val {F.cross_entropy(out, yv).item():.3f} acc {(out.argmax(1) == yv).float().mean():.3f}"  # noqa: E501
        )
