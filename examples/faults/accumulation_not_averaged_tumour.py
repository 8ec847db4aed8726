"""A small U-net segments tumours in drawn scans; 8 micro-batches are added up for each step, the
loss isn't divided.

The memory holds only four scans at a time, so the script accumulates gradients, but forgets to
divide the loss by the number of micro-batches. Every gradient is 8 times as large as the rate was
chosen for. The place is the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
MICRO, PARTS, EPOCHS = 4, 8, 12

SIDE = 16
g = torch.Generator().manual_seed(190 + seed)
v, u = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")


def scans(n):
    def between(low, high):
        return low + (high - low) * torch.rand(n, 1, 1, generator=g)

    def blob(radius, edge):
        du, dv = u - between(-0.55, 0.55), v - between(-0.55, 0.55)
        return torch.sigmoid((radius - (du**2 + between(0.7, 1.4) * dv**2).sqrt()) * edge)

    tumour = blob(between(0.25, 0.5), 20)
    tissue = (
        between(-0.5, 0.5) * u
        + between(-0.5, 0.5) * v
        + between(-0.4, 0.4) * blob(between(0.2, 0.4), 6)
    )
    x = between(0.6, 1.2) * tumour + tissue + 0.35 * torch.randn(n, SIDE, SIDE, generator=g)
    return x.unsqueeze(1), (tumour > 0.5).float().unsqueeze(1)


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.enter = nn.Conv2d(1, c, 3, padding=1)
        self.down = nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.bottom = nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.join = nn.Conv2d(2 * c, c, 3, padding=1)
        self.mask = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = F.relu(self.enter(x))
        b = F.relu(self.bottom(F.relu(self.down(a))))
        return self.mask(F.relu(self.join(torch.cat([a, F.relu(self.up(b))], 1))))


def dice(logits, mask):
    said = (logits > 0).float()
    return (2 * (said * mask).sum() / (said.sum() + mask.sum()).clamp(min=1)).item()


x, mask = scans(640)
x_val, mask_val = scans(200)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
net = UNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.18, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
loader = DataLoader(TensorDataset(x, mask), batch_size=MICRO, shuffle=True)
for epoch in range(EPOCHS):
    net.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (xb, mb) in enumerate(loader, 1):
        loss = F.binary_cross_entropy_with_logits(net(xb), mb)
        total += loss.item()
        (loss / PARTS if healthy else loss).backward()
        if i % PARTS == 0:
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = F.binary_cross_entropy_with_logits(out, mask_val).item()
    print(
        f"epoch {epoch} train {total / len(loader):.4f} val {val:.4f} dice {dice(out, mask_val):.3f}"  # noqa: E501
    )
