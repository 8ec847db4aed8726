"""Models black and white digits pixel by pixel with masked convolutions (PixelCNN)."""

import torch
from data import arguments, images
from torch import nn

ODD = (
    "about half of every kernel is zero and never has a gradient: the masks hide the pixels "
    "still to come; the target is the input itself; some pixels are black in every picture"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

x, _, x_val, _ = images(seed, raw=True)
x, x_val = (x > 7).float(), (x_val > 7).float()


class MaskedConv(nn.Conv2d):
    def __init__(self, inputs, outputs, size, *, sees_itself):
        super().__init__(inputs, outputs, size, padding=size // 2)
        mask = torch.ones(size, size)
        mask[size // 2, size // 2 + sees_itself :] = 0
        mask[size // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, maps):
        return self._conv_forward(maps, self.weight * self.mask, self.bias)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.path = nn.Sequential(
            nn.ReLU(), nn.Dropout2d(0.1), MaskedConv(width, width, 3, sees_itself=True)
        )

    def forward(self, maps):
        return maps + self.path(maps)


net = nn.Sequential(
    MaskedConv(1, 32, 5, sees_itself=False),
    Residual(32),
    Residual(32),
    Residual(32),
    nn.ReLU(),
    nn.Conv2d(32, 1, 1),
)
pixel_loss = nn.BCEWithLogitsLoss(reduction="none")


def nats(pictures):
    """Per picture; centred input, so that black is -0.5 and white 0.5."""
    return pixel_loss(net(pictures - 0.5), pictures).sum((1, 2, 3)).mean()


optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(14):
    net.train()
    for rows in torch.randperm(len(x)).split(64):
        loss = nats(x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    net.eval()
    with torch.no_grad():
        train_nats, val_nats = nats(x).item(), nats(x_val).item()
    print(f"epoch {epoch:2d}  train {train_nats:.2f}  validation {val_nats:.2f} nats a picture")

chance = ((x.sum(0) + 0.5) / (len(x) + 1)).expand_as(x_val)
independent = nn.functional.binary_cross_entropy(chance, x_val, reduction="none").sum((1, 2, 3))
print(f"validation: pixels by themselves {independent.mean():.2f}, PixelCNN {val_nats:.2f}")
