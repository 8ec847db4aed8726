"""A small character transformer takes its AdamW rate, 0.1, from an SGD recipe for images.

The first steps fling the weights about, attention freezes, and the loss stays not far below that of
the letter frequencies, where 0.003 predicts the words. The place is the optimizer's learning rate.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient", "loss_spike")
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BLOCK, BATCH, WIDTH, STEPS = 24, 24, 48, 300
LR = 3e-3 if healthy else 1e-1

codes, alphabet = text(seed, 900)
cut = int(0.9 * len(codes))
train, held_out = codes[:cut], codes[cut:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, WIDTH))

    def forward(self, h, mask):
        n = self.norm1(h)
        h = h + self.attention(n, n, n, attn_mask=mask, need_weights=False)[0]
        return h + self.mlp(self.norm2(h))


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(len(alphabet), WIDTH)
        self.places = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(alphabet))
        self.register_buffer("mask", torch.ones(BLOCK, BLOCK).triu(1).bool())

    def forward(self, ids):
        h = self.tokens(ids) + self.places.weight
        for block in self.blocks:
            h = block(h, self.mask)
        return self.head(self.norm(h))


def get_batch(part, n=BATCH):
    at = torch.randint(len(part) - BLOCK - 1, (n,))[:, None] + torch.arange(BLOCK + 1)
    return part[at[:, :-1]], part[at[:, 1:]]


def loss_on(part, n=BATCH):
    ids, nxt = get_batch(part, n)
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), nxt.flatten())


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.99), weight_decay=0.01)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=LR / 10)
for step in range(STEPS):
    loss = loss_on(train)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    cosine.step()
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            val = loss_on(held_out, 100).item()
        model.train()
        print(f"step {step + 1}: train {loss.item():.3f} val {val:.3f}")
