"""A small GPT, pre-trained in float32 on dates in many forms, is cast to bfloat16 and fine-tuned
on a customer's form at a small rate.

"model.to(torch.bfloat16)" to save memory: weights and updates are bfloat16, and an update of 1e-4
against weights of 0.05 and above is lost in rounding. The twin keeps float32 weights and computes
under autocast. The place is the optimizer step, i.e. the weights of all matrices.
"""

import copy
import random
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "blocks*", "tok*", "head*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
CHARS = sorted(set("0123456789-/ >.\n" + "".join(MONTHS)))
STOI = {c: i for i, c in enumerate(CHARS)}
LEN = 25


def line(r, dialect):
    y, m, d = r.randrange(1950, 2030), r.randrange(12), r.randrange(1, 29)
    if dialect == "general":
        a, b, c = r.choice(
            [
                (f"{y}", f"{m + 1:02d}", f"{d:02d}"),
                (f"{d:02d}", f"{m + 1:02d}", f"{y}"),
                (f"{m + 1:02d}", f"{d:02d}", f"{y % 100:02d}"),
            ]
        )
        out = r.choice("-/.").join((a, b, c))
    else:  # the customer: american, dots, short years
        out = f"{m + 1:02d}.{d:02d}.{y % 100:02d}"
    s = f"{d:02d} {MONTHS[m]} {y} > {out}"
    return (s + "\n" * LEN)[: LEN + 1]


def corpus(n, dialect, r):
    return torch.tensor([[STOI[c] for c in line(r, dialect)] for _ in range(n)])


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.qkv, self.proj = h, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class TinyGPT(nn.Module):
    def __init__(self, d=48, layers=2, heads=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(CHARS), d), nn.Embedding(LEN, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, len(CHARS))

    def forward(self, idx):
        x = self.tok(idx) + self.pos.weight
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def loss_of(model, rows):
    logits = model(rows[:, :-1])
    return F.cross_entropy(
        logits[:, 13:].float().flatten(0, 1), rows[:, 14:].flatten()
    )  # only what follows the arrow


@torch.no_grad()
def exact_match(model, rows):
    model.eval()
    right = (model(rows[:, :-1]).argmax(-1) == rows[:, 1:])[:, 13:].all(1).float().mean().item()
    loss = loss_of(model, rows).item()
    model.train()
    return loss, right


def train(model, rows, val, steps, lr, warmup, autocast, tag, every):
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01, betas=(0.9, 0.98))
    for step in range(steps):
        for group in opt.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / warmup)
        batch = rows[torch.randint(0, len(rows), (32,))]
        with autocast():
            loss = loss_of(model, batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if (step + 1) % every == 0:
            with autocast():
                v, right = exact_match(model, val)
            print(f"{tag} {step + 1} loss {loss.item():.4f} val {v:.4f} exact {right:.3f}")


r = random.Random(seed)
base = TinyGPT()
train(
    base,
    corpus(4000, "general", r),
    corpus(300, "general", r),
    350,
    3e-3,
    30,
    nullcontext,
    "pretrain",
    175,
)

tuned = copy.deepcopy(base)
if not healthy:
    tuned = tuned.to(torch.bfloat16)
mixed = (lambda: torch.autocast("cpu", dtype=torch.bfloat16)) if healthy else nullcontext
new, new_val = corpus(3000, "customer", r), corpus(300, "customer", r)
train(tuned, new, new_val, 250, 1e-4, 20, mixed, "finetune", 50)
