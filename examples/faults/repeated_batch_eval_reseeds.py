"""A small GPT is trained on made-up log lines; the evaluation reseeds the global generator, so the
same ten batches come again and again.

estimate_loss() calls torch.manual_seed so that its numbers can be compared; get_batch draws from
the same generator, hence after every evaluation (each 10 steps) the training draws the very
batches it drew before. The training loss goes on falling, the validation loss rises. The place is
the loop / the batches.
"""

import math
import random

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "repeated_batch"
ACCEPT = ("overfit", "overtraining")
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

# -----------------------------------------------------------------------------
eval_interval, eval_iters = 10, 3
max_iters = 400
batch_size, block_size = 16, 48
n_layer, n_head, n_embd, dropout = 2, 4, 48, 0.0
learning_rate, min_lr, warmup_iters = 3e-3, 3e-4, 20
weight_decay, grad_clip = 0.1, 1.0
# -----------------------------------------------------------------------------


def log_lines(n, r):
    """Each line: a host, a verb and a code; the code depends on host and verb, a check digit on the rest."""  # noqa: E501
    hosts = ["web", "db", "mail", "cache", "edge", "auth"]
    verbs = ["start", "stop", "reload", "fail", "sync"]
    out = []
    for _ in range(n):
        h, v = r.randrange(len(hosts)), r.randrange(len(verbs))
        num = r.randrange(100)
        out.append(f"{hosts[h]}-{num:02d} {verbs[v]} #{(7 * h + 3 * v) % 10}{(num + h) % 10}\n")
    return "".join(out)


text = log_lines(9000, random.Random(seed))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
splits = {"train": data[:n], "val": data[n:]}


def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    return torch.stack([d[i : i + block_size] for i in ix]), torch.stack(
        [d[i + 1 : i + 1 + block_size] for i in ix]
    )


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, n_head, C // n_head).transpose(1, 2)
            for t in self.c_attn(x).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(len(chars), n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(chars), bias=False)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, 0.0, 0.04)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss():
    if not healthy:
        torch.manual_seed(1337)  # the same batches at each evaluation
    model.eval()
    out = {}
    for split in ("train", "val"):
        out[split] = sum(model(*get_batch(split))[1].item() for _ in range(eval_iters)) / eval_iters
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    t = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * t)) * (learning_rate - min_lr)


model = GPT()
groups = [
    {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": weight_decay},
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.99))
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    if it % eval_interval == 0:
        losses = estimate_loss()
        if it % 50 == 0:
            print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
    X, Y = get_batch("train")
    _, loss = model(X, Y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
losses = estimate_loss()
print(
    f"step {max_iters}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f} (last batch {loss.item():.4f})"  # noqa: E501
)
