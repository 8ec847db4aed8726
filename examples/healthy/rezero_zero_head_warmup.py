"""A deep residual net with ReZero gates and a head of zeros; the rate warms up from nearly
nothing.
"""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the head and all gates start at zero, so the first gradients of nearly all "
    "layers are zero; tiny first updates"
)

_, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gate * self.body(x)


x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), *[Block(48) for _ in range(8)], nn.Linear(48, 10))
nn.init.zeros_(model[-1].weight)
nn.init.zeros_(model[-1].bias)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 60))
for xb, yb in batches(x, y, size=64, steps=250, seed=seed):
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
model.eval()
with torch.no_grad():
    print(f"loss {loss.item():.3f} accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
