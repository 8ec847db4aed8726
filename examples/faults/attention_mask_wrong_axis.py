"""Events of a particle detector as sets of hits; the padding mask is laid over the queries instead
of the keys.

The hits come from a ring buffer: slots after the n-th still hold hits of earlier events. The user
reshapes the mask to (B, 1, T, 1), so that a whole row of scores gets the same number, and softmax
takes it away: all attend to the stale slots. The place is the attention (blocks.*.attn).
"""

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("blocks*", "*attn*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class GPTConfig:
    slots: int = 20
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    n_class: int = 4


# -----------------------------------------------------------------------------
def events(n, cfg):
    """Sources of four kinds give rings, lines, clusters or two clusters; hits are (x, y, charge)."""  # noqa: E501
    T = cfg.slots
    y = torch.randint(0, cfg.n_class, (n,))
    count = torch.randint(6, T - 3, (n,))
    u = torch.rand(n, T)
    phi, c = 6.2832 * torch.rand(n, 1), (torch.rand(n, 2, 1) - 0.5)
    ring = torch.stack([torch.cos(6.2832 * u), torch.sin(6.2832 * u)], 1) * 0.6
    line = torch.stack([phi.cos(), phi.sin()], 1) * (2 * u.unsqueeze(1) - 1)
    blob = torch.randn(n, 2, T) * 0.35
    two = torch.randn(n, 2, T) * 0.15 + 0.5 * torch.stack([phi.cos(), phi.sin()], 1) * (
        2 * (u.unsqueeze(1) > 0.5).float() - 1
    )
    xy = (
        torch.stack([ring, line, blob, two], 1)[torch.arange(n), y]
        + c
        + 0.06 * torch.randn(n, 2, T)
    )
    hits = torch.cat([xy, torch.randn(n, 1, T) * 0.5], 1).transpose(1, 2)
    mask = torch.arange(T)[None] < count[:, None]
    stale = hits[torch.randperm(n)]  # what the ring buffer held before
    return torch.where(mask[..., None], hits, stale), mask, y


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd)

    def forward(self, x, mask):
        B, T, C = x.shape
        q, k, v = (
            a.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for a in self.c_attn(x).split(C, 2)
        )
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        keep = mask.view(B, 1, 1, T) if healthy else mask.view(B, 1, T, 1)
        att = att.masked_fill(~keep, -1e4)
        att = F.softmax(att, dim=-1)
        return self.c_proj((att @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(cfg.n_embd), Attention(cfg)
        self.ln_2 = nn.LayerNorm(cfg.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd)
        )

    def forward(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class SetTransformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Sequential(
            nn.Linear(3, cfg.n_embd), nn.GELU(), nn.Linear(cfg.n_embd, cfg.n_embd)
        )
        self.cls = nn.Parameter(torch.randn(1, 1, cfg.n_embd) * 0.02)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, cfg.n_class)

    def forward(self, hits, mask, targets=None):
        x = torch.cat([self.cls.expand(len(hits), -1, -1), self.embed(hits)], 1)
        mask = F.pad(mask, (1, 0), value=True)
        for block in self.blocks:
            x = block(x, mask)
        logits = self.head(self.ln_f(x[:, 0]))
        return logits, None if targets is None else F.cross_entropy(logits, targets)


# -----------------------------------------------------------------------------
cfg = GPTConfig()
train, val = events(6000, cfg), events(1000, cfg)
model = SetTransformer(cfg)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=2e-3
)
max_iters = 700
for it in range(1, max_iters + 1):
    for group in optimizer.param_groups:
        group["lr"] = (
            2e-3 * min(1, it / 50) * (0.1 + 0.45 * (1 + math.cos(math.pi * it / max_iters)))
        )
    ix = torch.randint(0, 6000, (64,))
    _, loss = model(*(a[ix] for a in train))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 140 == 0:
        model.eval()
        with torch.no_grad():
            logits, vloss = model(*val)
        model.train()
        print(
            f"iter {it}: train {loss.item():.4f} val {vloss.item():.4f} acc {(logits.argmax(1) == val[2]).float().mean().item():.3f}"  # noqa: E501
        )
