"""A small GPT on made-up log lines with tied input and output embeddings left at nn.Embedding's
N(0, 1).

Tying is one line (`self.head.weight = self.tok.weight`); the `apply(_init_weights)` that goes
with it in nanoGPT was not copied. The logits of the first step have a standard deviation of about
sqrt(width), the loss starts many times above ln(vocabulary). The place is `tok` / `head`, one
matrix.
"""

import math
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("tok*", "head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

# ---- config -----------------------------------------------------------------
block_size, batch_size, n_layer, n_head, n_embd = 48, 16, 2, 4, 96
max_iters, warmup, learning_rate, min_lr, grad_clip = 350, 40, 1e-3, 1e-4, 1.0
eval_interval, eval_iters = 70, 12


def write_log(n):
    r = random.Random(seed)
    units, levels = (
        ["auth", "cache", "db", "mailer", "queue", "web"],
        ["INFO", "INFO", "INFO", "WARN", "FAIL"],
    )
    verbs = {
        "INFO": ["started", "served", "closed"],
        "WARN": ["retried", "slowed"],
        "FAIL": ["dropped", "refused"],
    }
    out = []
    for _ in range(n):
        u, lvl = r.choice(units), r.choice(levels)
        ms = r.randint(1, 99) if lvl == "INFO" else r.randint(100, 999)
        out.append(
            f"[{lvl}] {u}: {r.choice(verbs[lvl])} {r.choice('abcdef')}{r.randint(0, 9)} in {ms}ms\n"
        )
    return "".join(out)


raw = write_log(4000)
chars = sorted(set(raw))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in raw])
split = int(0.9 * len(data))
parts = {"train": data[:split], "val": data[split:]}


def get_batch(name):
    d = parts[name]
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    return torch.stack([d[i : i + block_size] for i in ix]), torch.stack(
        [d[i + 1 : i + 1 + block_size] for i in ix]
    )


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in self.qkv(x).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab, bias=False)
        self.head.weight = self.tok.weight
        if healthy:
            self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {
        name: sum(model(*get_batch(name)).item() for _ in range(eval_iters)) / eval_iters
        for name in parts
    }
    model.train()
    return out


def get_lr(it):
    if it < warmup:
        return learning_rate * (it + 1) / warmup
    return min_lr + 0.5 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup))) * (
        learning_rate - min_lr
    )


model = GPT(len(chars))
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
    lr=learning_rate,
    betas=(0.9, 0.95),
)
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    if it == 0:
        print(f"iter 0: loss {loss.item():.3f} (ln V = {math.log(len(chars)):.3f})")
    if (it + 1) % eval_interval == 0:
        losses = estimate_loss(model)
        print(f"iter {it + 1}: train {losses['train']:.4f}, val {losses['val']:.4f}")
