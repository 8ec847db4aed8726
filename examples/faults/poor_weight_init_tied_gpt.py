"""A small GPT on arithmetic lines with tied embeddings; the init function was never applied.

nanoGPT draws all weights with std 0.02. Here self.apply(self._init_weights) got lost, so that the
embedding, N(0, 1) by default, is also the output layer: logits of size ten and a first loss far
above ln(vocabulary). The place is wte / head.
"""

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("*wte*", "head*", "*wpe*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class GPTConfig:
    block_size: int = 48
    vocab_size: int = 0
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 96
    dropout: float = 0.0


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd)
        self.n_head = c.n_head

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1 = nn.LayerNorm(c.n_embd)
        self.attn = CausalSelfAttention(c)
        self.ln_2 = nn.LayerNorm(c.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.h = nn.ModuleList(Block(c) for _ in range(c.n_layer))
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.head.weight = self.wte.weight
        if healthy:
            self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, 0.0, 0.02)
            if getattr(m, "bias", None) is not None:
                nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


def corpus(n, g):
    words = ["alpha", "bravo", "delta", "gamma", "kappa", "omega", "sigma", "theta"]
    out = []
    for _ in range(n):
        a, b, w = (int(v) for v in torch.randint(0, 90, (3,), generator=g))
        name = words[w % 8]
        out.append(
            f"{name}:{a}+{b}={a + b};{name[::-1]}\n"
            if w % 2
            else f"{name}:{max(a, b)}-{min(a, b)}={abs(a - b)}.\n"
        )
    return "".join(out)


g = torch.Generator().manual_seed(seed)
text = corpus(9000, g)
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
cut = int(0.9 * len(ids))
train_ids, val_ids = ids[:cut], ids[cut:]
cfg = GPTConfig(vocab_size=len(chars))


def get_batch(data, batch=20):
    ix = torch.randint(len(data) - cfg.block_size - 1, (batch,), generator=g)
    x = torch.stack([data[i : i + cfg.block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + cfg.block_size] for i in ix])
    return x, y


model = GPT(cfg)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
    lr=2e-3,
    betas=(0.9, 0.95),
)
max_iters, warmup = 240, 30
for it in range(max_iters):
    lr = (
        2e-3 * (it + 1) / warmup
        if it < warmup
        else 2e-4 + 0.5 * 1.8e-3 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup)))
    )
    for group in opt.param_groups:
        group["lr"] = lr
    _, loss = model(*get_batch(train_ids))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if it % 60 == 0 or it == max_iters - 1:
        model.eval()
        with torch.no_grad():
            val = sum(model(*get_batch(val_ids))[1].item() for _ in range(6)) / 6
        model.train()
        print(f"iter {it} train {loss.item():.4f} val {val:.4f}")
