"""A small BERT-like classifier decides who did what to whom; the optimizer's groups are made by
names ending in weight or bias, and leave two parameters out.

The positions (pos_emb) and the [CLS] vector are bare nn.Parameters, so neither list of the
weight-decay split has them. pos_emb stays at zero, and the model cannot tell the order of words.
The place is the optimizer (pos_emb, cls_token).
"""

import inspect
import math
import random
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("pos_emb", "cls_token", "*pos_emb", "*cls_token", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class BertConfig:
    block_size: int = 14
    vocab_size: int = 0
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 48
    dropout: float = 0.1
    classes: int = 3


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n_head = c.n_head
        self.ln_1, self.ln_2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.c_attn, self.c_proj = nn.Linear(c.n_embd, 3 * c.n_embd), nn.Linear(c.n_embd, c.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(c.n_embd, 2 * c.n_embd),
            nn.GELU(),
            nn.Linear(2 * c.n_embd, c.n_embd),
            nn.Dropout(c.dropout),
        )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, self.n_head, -1).transpose(1, 2)
            for t in self.c_attn(self.ln_1(x)).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, C)
        x = x + self.c_proj(y)
        return x + self.mlp(self.ln_2(x))


class Bert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok_emb = nn.Embedding(c.vocab_size, c.n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, c.block_size + 1, c.n_embd))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, c.n_embd))
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.n_layer))
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, c.classes)

    def forward(self, idx):
        x = torch.cat([self.cls_token.expand(len(idx), -1, -1), self.tok_emb(idx)], 1)
        x = x + self.pos_emb[:, : x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln_f(x[:, 0]))

    def configure_optimizers(self, weight_decay, lr, betas):
        params = {n: p for n, p in self.named_parameters() if p.requires_grad}
        decay = [n for n, p in params.items() if n.endswith("weight") and p.dim() >= 2]
        no_decay = [
            n for n in params if n not in decay and (healthy or n.endswith(("weight", "bias")))
        ]
        groups = [
            {"params": [params[n] for n in decay], "weight_decay": weight_decay},
            {"params": [params[n] for n in no_decay], "weight_decay": 0.0},
        ]
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
        print(f"{len(decay)} decayed, {len(no_decay)} other tensors, fused available: {fused}")
        return torch.optim.AdamW(groups, lr=lr, betas=betas)


# who helps whom: the label is who is the actor: a man, a woman or an animal
GROUPS = [
    ["bob", "karl", "omar", "ivan", "luis"],
    ["ann", "mei", "zoe", "nina", "ines"],
    ["rex", "tom-cat", "bella", "dobbin", "polly"],
]
VERBS, FILL = (
    ["helps", "meets", "teaches", "chases", "watches"],
    [
        "today",
        "in",
        "the",
        "yard",
        "behind",
        "old",
        "school",
        "often",
        "with",
        "joy",
        "near",
        "water",
    ],
)
words = sorted({w for g in GROUPS for w in g} | set(VERBS) | set(FILL) | {"by", "is", "seen"})
stoi = {w: i for i, w in enumerate(words)}


def sentences(n, rnd, length):
    xs, ys = [], []
    for _ in range(n):
        a, b = rnd.randrange(3), rnd.randrange(3)
        actor, other = rnd.choice(GROUPS[a]), rnd.choice(GROUPS[b])
        core = (
            [actor, rnd.choice(VERBS), other]
            if rnd.random() < 0.6
            else [other, "is", "seen", "by", actor]
        )
        fill = [rnd.choice(FILL) for _ in range(length - len(core))]
        cut = rnd.randint(0, 3)
        xs.append([stoi[w] for w in fill[:cut] + core + fill[cut:]])
        ys.append(a)
    return torch.tensor(xs), torch.tensor(ys)


rnd = random.Random(seed)
config = BertConfig(vocab_size=len(words))
x, y = sentences(12000, rnd, config.block_size)
xv, yv = sentences(1200, rnd, config.block_size)
model = Bert(config)
optimizer = model.configure_optimizers(0.05, 2e-3, (0.9, 0.98))
max_iters = 600
for it in range(1, max_iters + 1):
    lr = 2e-3 * (
        it / 50
        if it < 50
        else 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (it - 50) / (max_iters - 50)))
    )
    for g in optimizer.param_groups:
        g["lr"] = lr
    rows = torch.randint(0, len(x), (64,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(xv)
        model.train()
        print(
            f"iter {it}: loss {loss.item():.4f}, val {F.cross_entropy(out, yv).item():.4f}, val acc {(out.argmax(1) == yv).float().mean().item():.3f}"  # noqa: E501
        )
