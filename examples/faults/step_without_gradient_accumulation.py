"""A small vision transformer learns digits with gradients of four micro-batches. The loop clears at
its top, and makes the step there too when four are through.

It clears first and steps afterwards, so that the optimizer never finds a gradient; the progress bar
runs, the loss of each micro-batch varies, and nothing is learnt. The place is the loop.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ViT(nn.Module):
    def __init__(self, width=48, depth=1):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, stride=2)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(len(h), -1, -1), h], 1) + self.position
        return self.head(self.encoder(h)[:, 0])


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    model.train()
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
model, accumulate = ViT(), 4
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for i, (a, b) in enumerate(batches(x, y, size=16, steps=1401, seed=seed)):
    if i % accumulate == 0:
        if healthy:
            if i:
                optimizer.step()
            optimizer.zero_grad()
        else:
            optimizer.zero_grad()
            if i:
                optimizer.step()
    loss = F.cross_entropy(model(a), b) / accumulate
    loss.backward()
    if i % 140 == 139:
        val, accuracy = evaluate(model, x_val, y_val)
        print(
            f"batch {i + 1}: loss {loss.item() * accumulate:.3f} val {val:.3f}"
            f" accuracy {accuracy:.3f}"
        )
