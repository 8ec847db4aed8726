"""Doubles the resolution of small pictures by adding learned details to a bicubic enlargement."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the last layer starts from zeros, so step one moves nothing else and the net begins as plain "
    "bicubic; the loss is tiny from the start and falls by a third at best; batches are crops"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIDE = 32


def drawings(n):
    """Straight-edged shapes over a soft background."""
    rows, columns = torch.meshgrid(
        torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij"
    )
    pictures = 0.4 + 0.2 * torch.rand(n, 1, 1) * rows
    for _ in range(4):
        turn = 6.28 * torch.rand(n, 1, 1)
        place = torch.rand(2, n, 1, 1) * 1.4 - 0.7
        across = turn.cos() * (rows - place[0]) + turn.sin() * (columns - place[1])
        along = -turn.sin() * (rows - place[0]) + turn.cos() * (columns - place[1])
        size = 0.15 + 0.3 * torch.rand(2, n, 1, 1)
        inside = (size[0] - across.abs()).minimum(size[1] - along.abs())
        cover = (inside / 0.015).sigmoid()
        pictures = cover * torch.rand(n, 1, 1) + (1 - cover) * pictures
    return pictures.unsqueeze(1)


def shrink(pictures):
    small = nn.functional.interpolate(pictures, scale_factor=0.5, mode="area")
    return small + 0.005 * torch.randn_like(small)


def bicubic(small):
    return nn.functional.interpolate(small, scale_factor=2, mode="bicubic")


class Details(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GELU(),
        )
        self.last = nn.Conv2d(width, 4, 3, padding=1)
        for layer in self.body[::2]:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, small):
        return bicubic(small) + nn.functional.pixel_shuffle(
            self.last(self.body(4 * (small - 0.5))), 2
        )


def psnr(guess, truth):
    return (-10 * torch.log10((guess - truth).square().mean((1, 2, 3)))).mean().item()


large, large_val = drawings(400), drawings(60)
small, small_val = shrink(large), shrink(large_val)
net = Details()
criterion = nn.L1Loss()
optimizer = torch.optim.Adam(net.parameters(), lr=1.5e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-3, total_steps=700, pct_start=0.15)
for step in range(700):
    net.train()
    rows = torch.randint(0, len(large), (16,))
    top, left = torch.randint(0, 7, (2,)).tolist()
    crop = small[rows, :, top : top + 10, left : left + 10]
    truth = large[rows, :, 2 * top : 2 * top + 20, 2 * left : 2 * left + 20]
    if torch.rand(()) < 0.5:
        crop, truth = crop.flip(3), truth.flip(3)
    loss = criterion(net(crop), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        net.eval()
        with torch.no_grad():
            restored = net(small_val)
        val_loss = criterion(restored, large_val).item()
        print(
            f"step {step + 1}  loss {loss.item():.4f}  validation {val_loss:.4f}  "
            f"PSNR {psnr(restored, large_val):.2f}"
        )

print(
    f"PSNR on held-out drawings: bicubic {psnr(bicubic(small_val), large_val):.2f} dB, "
    f"with details {psnr(restored, large_val):.2f} dB"
)
