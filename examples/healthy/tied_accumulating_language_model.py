"""A nanoGPT-like model with tied weights learns to answer look-ups: gradients pile up over four
micro-batches, most targets are ignored.

It looks odd since zero_grad comes once in four backwards (each loss is divided by four), 16 of 17
targets are -100, the input and output embeddings are one tensor, the start of the output
projections is zero, the clipping at 0.5 cuts most steps (Adam minds no factor), the batch is
small and noisy, and the rate is warmed up from zero and brought down to zero. The accuracy on new
look-ups gets to nearly 1.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "16 of 17 targets are ignored, weights are tied, and four backward passes make a step"
_, seed = arguments(__doc__)

vocab, pairs, n_embd, n_head, n_layer = 40, 8, 64, 4, 2
block_size = 2 * pairs + 1
max_iters, micro_batch, accumulate, eval_interval = 240, 24, 4, 30
lr, warmup, clip = 2e-3, 30, 0.5
gen = torch.Generator().manual_seed(seed)
val_gen = torch.Generator().manual_seed(seed + 10_000)


def lookups(n, g):
    """k1 v1 k2 v2 ... k: say the value that came after k. Keys are 0..19, values 20..39."""
    keys = torch.rand(n, 20, generator=g).argsort(1)[:, :pairs]
    values = torch.randint(20, vocab, (n, pairs), generator=g)
    ask = torch.randint(0, pairs, (n, 1), generator=g)
    x = torch.cat([torch.stack([keys, values], 2).flatten(1), keys.gather(1, ask)], 1)
    y = torch.full_like(x, -100)
    y[:, -1] = values.gather(1, ask).squeeze(1)
    return x, y


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = (
            nn.Linear(n_embd, 3 * n_embd, bias=False),
            nn.Linear(n_embd, n_embd, bias=False),
        )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, n_head, -1).transpose(1, 2) for t in self.c_attn(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attn = nn.RMSNorm(n_embd), nn.RMSNorm(n_embd), Attention()
        self.c_fc, self.c_proj = (
            nn.Linear(n_embd, 4 * n_embd, bias=False),
            nn.Linear(4 * n_embd, n_embd, bias=False),
        )

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.c_proj(F.relu(self.c_fc(self.n2(x))).square())


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.shift = nn.Conv1d(n_embd, n_embd, 2, groups=n_embd, bias=False)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.RMSNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, 0, 0.1)
        nn.init.normal_(self.wpe.weight, 0, 0.1)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.zeros_(p)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        x = x + self.shift(F.pad(x.transpose(1, 2), (1, 0))).transpose(1, 2)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}],
    lr=lr,
    betas=(0.9, 0.95),
)
xv, yv = lookups(1000, val_gen)
smooth = None
for it in range(max_iters):
    now = (
        lr
        * min(1.0, it / warmup)
        * 0.5
        * (1 + math.cos(math.pi * max(0, it - warmup) / (max_iters - warmup)))
    )
    for group in opt.param_groups:
        group["lr"] = now
    for _ in range(accumulate):
        x, y = lookups(micro_batch, gen)
        _, loss = model(x, y)
        (loss / accumulate).backward()
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
    opt.step()
    opt.zero_grad(set_to_none=True)
    if (it + 1) % eval_interval == 0:
        with torch.no_grad():
            logits, v = model(xv, yv)
        acc = (logits[:, -1].argmax(-1) == yv[:, -1]).float().mean().item()
        print(
            f"iter {it + 1} loss {smooth:.4f} val {v.item():.4f} acc {acc:.3f} norm {norm.item():.2f} lr {now:.1e}"  # noqa: E501
        )
