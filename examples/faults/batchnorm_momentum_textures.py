"""A CNN with batch normalisation tells five textures apart; its running statistics hardly move
(momentum 0.001).

The user took over "momentum 0.999" from another framework as 1 - 0.999: after 200 steps the
running means and variances are still near 0 and 1, and the network fails in eval mode. The place
is the BatchNorm2d layers.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "blocks*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def textures(n, g):
    """Gratings of five directions with a free frequency, phase, contrast and noise."""
    y = torch.randint(0, 5, (n,), generator=g)
    angle = (y * math.pi / 5 + 0.12 * torch.randn(n, generator=g)).view(-1, 1, 1)
    freq = (0.6 + 0.7 * torch.rand(n, generator=g)).view(-1, 1, 1)
    phase = (6.283 * torch.rand(n, generator=g)).view(-1, 1, 1)
    yy, xx = torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij")
    wave = torch.sin(freq * (xx * angle.cos() + yy * angle.sin()) + phase)
    x = 0.5 + 0.2 * wave + 0.15 * torch.randn(n, 14, 14, generator=g)
    return x.unsqueeze(1), y


class Block(nn.Module):
    def __init__(self, c_in, c_out, momentum):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(c_out, momentum=momentum)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class TextureNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.blocks = nn.Sequential(
            Block(1, 12, momentum),
            nn.MaxPool2d(2),
            Block(12, 24, momentum),
            Block(24, 24, momentum),
        )
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def main():
    g = torch.Generator().manual_seed(seed)
    train, (x_val, y_val) = TensorDataset(*textures(2000, g)), textures(500, g)
    loader = DataLoader(train, batch_size=50, shuffle=True, drop_last=True)
    model = TextureNet(momentum=0.1 if healthy else 0.001)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    for epoch in range(5):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, val loss {val:.3f}, val accuracy {accuracy:.3f}"  # noqa: E501
        )


main()
