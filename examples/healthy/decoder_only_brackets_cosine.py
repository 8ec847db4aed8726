"""A small GPT of nested brackets and the numbers between them: warm-up, cosine and tied weights.

Two groups of weight decay, dropout, clipped gradients, small normal initialisation with the
projections into the residual stream scaled down by depth.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a rate of nearly 0 at the first and the last steps; the loss ends at the entropy of the text"

KINDS, DIGITS, LENGTH = 3, 5, 40
OPEN, CLOSE, NUMBER, BEGIN = 0, KINDS, 2 * KINDS, 2 * KINDS + DIGITS
VOCABULARY = BEGIN + 1


def text(g):
    """Brackets close in the order in which they opened last; a number repeats the depth mod 5."""
    row, open_ones = [BEGIN], []
    while len(row) < LENGTH + 1:
        draw = torch.rand((), generator=g).item()
        if draw < 0.40 and len(open_ones) < 6:
            open_ones.append(int(torch.randint(KINDS, (), generator=g)))
            row.append(OPEN + open_ones[-1])
        elif draw < 0.75 and open_ones:
            row.append(CLOSE + open_ones.pop())
        else:
            row.append(NUMBER + len(open_ones) % DIGITS)
    return torch.tensor(row)


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(self.ln1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = self.out(mixed.transpose(1, 2).reshape(b, t, c))
        x = x + F.dropout(mixed, self.dropout, self.training)
        h = self.down(F.gelu(self.up(self.ln2(x))))
        return x + F.dropout(h, self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, width=40, heads=4, depth=2, dropout=0.05):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * depth) if residual else 0.02)
        self.head.weight = self.token.weight

    def forward(self, ids):
        x = self.token(ids) + self.position.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
rows = torch.stack([text(g) for _ in range(1300)])
train, val = rows[:1200], rows[1200:]
model = GPT()
decayed = [p for p in model.parameters() if p.dim() == 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=4e-3, betas=(0.9, 0.95))
steps, warm_up = 300, 40


def factor(step):
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))


schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(steps):
    model.train()
    batch = train[torch.randint(len(train), (28,), generator=g)]
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            logits = model(val[:, :-1])
            val_loss = F.cross_entropy(logits.flatten(0, 1), val[:, 1:].flatten())
            closing = (val[:, 1:] >= CLOSE) & (val[:, 1:] < NUMBER)
            right = (logits[..., CLOSE:NUMBER].argmax(-1) + CLOSE == val[:, 1:])[closing]
        print(
            f"step {step + 1}: loss {loss.item():.3f}, val {val_loss:.3f}, "
            f"brackets closed rightly {right.float().mean():.3f}"
        )
