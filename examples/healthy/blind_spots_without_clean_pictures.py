"""Learns to remove noise from woven patterns of which no clean copy is known (blind spots)."""

import torch
from data import arguments
from torch import nn

ODD = (
    "input and target are the same noisy picture, apart from some pixels that are overwritten by "
    "a neighbour; the loss counts these alone and cannot fall below the variance of the noise"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIGMA, SIDE = 0.5, 12


def patterns(n):
    """Two regions per picture, each with stripes of its own direction and width."""
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    waves = []
    for _ in range(2):
        turn, phase = 3.14 * torch.rand(n, 1, 1), 6.28 * torch.rand(n, 1, 1)
        speed = 6.28 / (3.5 + 3 * torch.rand(n, 1, 1))
        waves.append((speed * (turn.cos() * rows + turn.sin() * columns) + phase).sin())
    border = 3 + 6 * torch.rand(n, 1, 1) + (torch.rand(n, 1, 1) - 0.5) * rows
    return torch.where(columns < border, *waves).unsqueeze(1)


clean, clean_val = patterns(800), patterns(300)
noisy = clean + SIGMA * torch.randn_like(clean)
noisy_val = clean_val + SIGMA * torch.randn_like(clean_val)


def with_blind_spots(pictures):
    """Overwrites one pixel in ten by one of its eight neighbours; the picture and the spots."""
    spots = torch.rand_like(pictures) < 0.1
    padded = nn.functional.pad(pictures, (1, 1, 1, 1), mode="reflect")
    patches = nn.functional.unfold(padded, 3).view(len(pictures), 9, SIDE, SIDE)
    which = torch.randint(0, 8, (len(pictures), 1, SIDE, SIDE))
    which = which + (which >= 4)
    return torch.where(spots, patches.gather(1, which), pictures), spots


class Denoiser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.low = nn.Sequential(
            nn.AvgPool2d(2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
        )
        self.last = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 1)
        )

    def forward(self, pictures):
        maps = self.first(pictures)
        return self.last(torch.cat([maps, self.low(maps)], 1))


def blind_loss(pictures):
    spoiled, spots = with_blind_spots(pictures)
    return (net(spoiled) - pictures)[spots].square().mean()


net = Denoiser()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(14):
    net.train()
    for rows in torch.randperm(len(noisy)).split(32):
        loss = blind_loss(noisy[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    if epoch % 3 == 1:
        net.eval()
        with torch.no_grad():
            val_loss = blind_loss(noisy_val).item()
        print(
            f"epoch {epoch:2d}  loss {loss.item():.3f}  validation {val_loss:.3f} "
            f"(noise {SIGMA**2:.3f})"
        )

kernel = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]).view(1, 1, 3, 3) / 16
padded = nn.functional.pad(noisy_val, (1, 1, 1, 1), mode="reflect")
blurred = nn.functional.conv2d(padded, kernel)
net.eval()
with torch.no_grad():
    restored = net(noisy_val)
errors = [(p - clean_val).square().mean().item() for p in (noisy_val, blurred, restored)]
print(
    "error against clean validation pictures: noisy {:.3f}, blurred {:.3f}, net {:.3f}".format(
        *errors
    )
)
