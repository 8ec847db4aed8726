"""Land cover of satellite tiles: the pictures are cut row by row, the labels come column by column.

unfold() goes along a row of the scene first; the table of the GIS export goes down a column first,
and both have 30 x 52 entries. The place is the loader. The twin puts the table into the order of
the tiles. The test scene was labelled by hand and is in order.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "loss*", "input*")
SILENT = False
EXACT = False
EARLY = True

COVER = ("water", "forest", "field", "town")
DOWN, ACROSS, TILE = 30, 52, 8
#                       red   green  blue  infrared
COLOUR = torch.tensor(
    [[0.2, 0.2, 0.3, 0.2], [0.2, 0.3, 0.2, 0.4], [0.3, 0.3, 0.2, 0.4], [0.3, 0.3, 0.3, 0.3]]
)
ROUGH = torch.tensor([0.08, 0.16, 0.12, 0.2])


def scene():
    """A picture of DOWN x ACROSS tiles and, as GIS exports it, a table of (column, row, cover)."""
    ground = torch.randn(1, len(COVER), DOWN // 2, ACROSS // 2)
    ground = F.interpolate(ground, size=(DOWN, ACROSS), mode="bicubic")[0]
    cover = ground.argmax(0)
    fine = cover.repeat_interleave(TILE, 0).repeat_interleave(TILE, 1)
    light = 1 + 0.25 * torch.randn(DOWN, ACROSS)
    light = light.repeat_interleave(TILE, 0).repeat_interleave(TILE, 1)
    picture = COLOUR[fine] * light.unsqueeze(-1)
    picture = picture + ROUGH[fine].unsqueeze(-1) * torch.randn_like(picture)
    picture = picture + 0.02 * torch.randn(4)
    table = [(c, r, int(cover[r, c])) for c in range(ACROSS) for r in range(DOWN)]
    return picture.permute(2, 0, 1), table


def tiles(picture):
    patches = F.unfold(picture.unsqueeze(0), TILE, stride=TILE)[0]
    return patches.t().reshape(-1, 4, TILE, TILE)


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 24, 3, padding=1)
        self.classify = nn.Linear(48, len(COVER))

    def forward(self, x):
        h = F.relu(self.conv1(x))
        h = F.relu(self.conv2(F.max_pool2d(h, 2)))
        return self.classify(torch.cat([h.mean((2, 3)), h.amax((2, 3))], 1))


def main():
    healthy, _ = arguments(__doc__)
    x, y = [], []
    for _ in range(2):
        picture, table = scene()
        if healthy:
            table = sorted(table, key=lambda entry: (entry[1], entry[0]))
        x.append(tiles(picture))
        y.append(torch.tensor([cover for _, _, cover in table]))
    x, y = torch.cat(x), torch.cat(y)
    picture, table = scene()
    x_test = tiles(picture)
    y_test = torch.tensor([cover for _, _, cover in sorted(table, key=lambda e: (e[1], e[0]))])

    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    x, x_test = (x - mean) / std, (x_test - mean) / std
    net = CoverNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for epoch in range(4):
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (net(x_test).argmax(1) == y_test).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.3f}, test scene {accuracy:.3f}")


main()
