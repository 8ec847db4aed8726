"""A tagger, pre-trained in the same script, is adapted to another dialect with LoRA: most
parameters frozen, B starts at zero.

It looks odd because 90 % of the parameters never change in the second part, all B matrices are
zero at the start (so that the A matrices have exactly zero gradient in the first step), and only
adapters and head are in the optimizer. That is LoRA.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "A tagger, pre-trained in the same script, is adapted to another dialect with LoRA: most "
    "parameters frozen, B starts at zero"
)
_, seed = arguments(__doc__)
VOCAB, LENGTH, TAGS = 60, 12, 5


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.A), self.B)


class Block(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, D))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Tagger(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, d), nn.Parameter(0.02 * torch.randn(LENGTH, d))
        self.left = nn.Linear(d, d)
        self.blocks = nn.ModuleList([Block(d), Block(d)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, TAGS)

    def forward(self, ids):
        x = self.tok(ids)
        x = x + self.pos + self.left(F.pad(x, (0, 0, 1, 0))[:, :-1])
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def sentences(n, g, shift):
    """A token's tag depends on its own class and on that of its left neighbour; the dialect swaps two classes."""  # noqa: E501
    ids = torch.randint(0, VOCAB, (n, LENGTH), generator=g)
    kind = ids % TAGS
    if shift:
        kind = torch.tensor([0, 3, 2, 1, 4])[kind]
    left = torch.cat([torch.zeros(n, 1, dtype=torch.long), kind[:, :-1]], 1)
    tags = (kind + (left > 2).long()) % TAGS
    noise = torch.rand(ids.shape, generator=g) < 0.03
    return ids, torch.where(noise, torch.randint(0, TAGS, ids.shape, generator=g), tags)


def fit(model, params, data, val, steps, lr, name, g):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=steps)
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(data[0]), (64,), generator=g)
        loss = F.cross_entropy(model(data[0][rows]).flatten(0, 1), data[1][rows].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                out = model(val[0])
            model.train()
            print(
                f"{name} step {step} loss {loss.item():.4f} val {F.cross_entropy(out.flatten(0, 1), val[1].flatten()).item():.4f} accuracy {(out.argmax(-1) == val[1]).float().mean():.4f}"  # noqa: E501
            )


g = torch.Generator().manual_seed(seed)
model = Tagger()
fit(
    model,
    model.parameters(),
    sentences(8000, g, False),
    sentences(500, g, False),
    200,
    3e-3,
    "pre-training",
    g,
)

for p in model.parameters():
    p.requires_grad_(False)
for block in model.blocks:
    block.qkv, block.proj = LoRALinear(block.qkv), LoRALinear(block.proj)
    block.up, block.down = LoRALinear(block.up), LoRALinear(block.down)
model.head.requires_grad_(True)
trainable = [p for p in model.parameters() if p.requires_grad]
print(
    f"trainable {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())}"
)
fit(model, trainable, sentences(8000, g, True), sentences(500, g, True), 300, 5e-3, "lora", g)
