"""A small vision transformer takes the place of a ResNet; the optimizer becomes AdamW.

Fault: the rate stayed the ResNet's, which suited SGD: 0.05. The place is the optimizer. The loss
jumps and then lies at that of guessing.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

KIND = "learning_rate_too_high"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.heads = heads

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(h)
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, d=32, depth=3):
        super().__init__()
        self.patch = nn.Conv2d(1, d, 2, stride=2)
        self.pos = nn.Parameter(torch.randn(1, 16, d) * 0.02)
        self.blocks = nn.Sequential(*[Block(d, 4) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.blocks(h)).mean(1))


x, y, x_val, y_val = images(seed)
net = ViT()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3 if healthy else 0.05, weight_decay=0.01)
for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=400, seed=seed), 1):
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        net.train()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
