"""1-D U-Net that marks the peaks in a signal; BatchNorm "as in EfficientNet", eps and momentum
swapped.

TensorFlow's EfficientNet has momentum 0.99 and epsilon 1e-3, in PyTorch momentum 0.01 and eps
1e-3; here the keyword arguments come out as momentum=1e-3 (and eps=1e-2, harmless). After a few
hundred steps the running statistics have moved only a part of the way, so that evaluation does
not see the net that was trained. The twin leaves the default momentum. The place is the batch
norms. Silent.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH = 64


def make(n):
    x = 0.3 * torch.randn(n, 1, LENGTH)
    mask = torch.zeros(n, LENGTH)
    grid = torch.arange(LENGTH).float()
    for i in range(n):
        for _ in range(int(torch.randint(1, 4, ()))):
            centre, width = 60 * torch.rand(()) + 2, 1.5 + 2 * torch.rand(())
            height = (0.8 + torch.rand(())) * (1 if torch.rand(()) < 0.7 else -1)
            x[i, 0] += height * torch.exp(-(((grid - centre) / width) ** 2))
            if height > 0:  # only peaks count, dips do not
                mask[i, (grid - centre).abs() < 1.5 * width] = 1
    return x, mask


def conv_block(n_in, n_out):
    block = nn.Sequential()
    block.add_module("conv", nn.Conv1d(n_in, n_out, 5, padding=2, bias=False))
    if healthy:
        block.add_module("bn", nn.BatchNorm1d(n_out, eps=1e-2))
    else:
        block.add_module("bn", nn.BatchNorm1d(n_out, eps=1e-2, momentum=1e-3))
    block.add_module("act", nn.SiLU())
    return block


class UNet1d(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.enc1, self.enc2 = conv_block(1, c), conv_block(c, 2 * c)
        self.mid = conv_block(2 * c, 2 * c)
        self.dec2, self.dec1 = conv_block(4 * c, c), conv_block(2 * c, c)
        self.head = nn.Conv1d(c, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool1d(a, 2))
        m = self.mid(F.max_pool1d(b, 2))
        m = self.dec2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        m = self.dec1(torch.cat([F.interpolate(m, scale_factor=2), a], 1))
        return self.head(m).squeeze(1)


def dice(logits, mask):
    p = (logits > 0).float()
    return (2 * (p * mask).sum() / (p.sum() + mask.sum()).clamp(min=1)).item()


x, y = make(1280)
mean, std = x.mean(), x.std()
x = (x - mean) / std
x_val, y_val = make(300)
x_val = (x_val - mean) / std
model = UNet1d()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for epoch in range(6):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val = F.binary_cross_entropy_with_logits(out, y_val).item()
    print(
        f"epoch {epoch}: train {total / len(x):.4f} val {val:.4f} val dice {dice(out, y_val):.3f}"
    )
