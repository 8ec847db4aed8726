"""Maps of soil moisture by two radar channels, with batches of two maps and group norm.

The maps are large and only two fit at a time, so that the loss jumps about; group norm does not
mind, the rate is small, and the validation falls steadily.
"""

import torch
from data import arguments
from torch import nn

ODD = "batches of two, so that the loss of single steps jumps by a factor of ten"

_, seed = arguments(__doc__)


def maps(n, g):
    coarse = torch.randn(n, 2, 5, 5, generator=g)
    x = nn.functional.interpolate(coarse, size=20, mode="bicubic")
    near = nn.functional.avg_pool2d(x, 3, stride=1, padding=1)
    moisture = near[:, 0] - 0.6 * near[:, 1].relu()
    level = torch.randn(n, 1, 1, generator=g).abs()
    y = moisture * level + 0.1 * torch.randn(moisture.shape, generator=g)
    x = torch.cat([x, level.view(-1, 1, 1, 1).expand(n, 1, 20, 20)], 1)
    return x + 0.05 * torch.randn(x.shape, generator=g), y


class MoistureNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.mix = nn.Conv2d(width, width, 3, padding=1)
        self.out = nn.Conv2d(width + 3, width, 1)
        self.moisture = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = self.mix(self.norm(self.stem(x)).relu()).relu()
        return self.moisture(self.out(torch.cat([h, x], 1)).relu()).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = maps(500, g)
model = MoistureNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    total = 0.0
    for rows in torch.randperm(400, generator=g).split(2):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 200
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[400:]), y[400:]).item()
    print(f"epoch {epoch}: loss {total:.4f} validation {val:.4f}")
