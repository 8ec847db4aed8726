"""Weeds in a beet field from the air, pixel by pixel; a sigmoid stands before BCEWithLogitsLoss.

The net ends with a sigmoid for the map that is shown; the loss that was chosen for its stability
applies its own. Outputs between 0 and 1 become probabilities between a half and 0.73: no pixel can
ever be said to be bare.
The place is the loss and the end of the network. The twin has no sigmoid there.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "up.2", "up*", "output*", ", ")
SILENT = False
EXACT = True
EARLY = True


class FieldNet(nn.Module):
    def __init__(self, final):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, padding=1), nn.ReLU()
        )
        self.up = nn.Sequential(
            nn.ConvTranspose2d(24, 16, 2, stride=2), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)
        )
        if final is not None:
            self.up.append(final)

    def forward(self, x):
        return self.up(self.down(x)).squeeze(1)


def fields(n, g):
    side = 24
    rows, cols = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    beet = ((cols % 6) < 2).float().expand(n, side, side)
    weed = torch.zeros(n, side, side)
    for _ in range(4):
        r, c = (torch.randint(0, side, (n, 1, 1), generator=g) for _ in range(2))
        weed = torch.maximum(weed, ((rows - r) ** 2 + (cols - c) ** 2 < 7).float())
    image = torch.stack(
        [0.5 - 0.2 * beet - 0.1 * weed, 0.4 + 0.3 * beet + 0.4 * weed, 0.3 + 0.2 * weed], 1
    )
    image = image + 0.15 * torch.randn(image.shape, generator=g)
    return (image - 0.45) / 0.25, weed


def main():
    healthy, seed = arguments(__doc__)
    x, weed = fields(500, torch.Generator().manual_seed(seed))
    loader = DataLoader(TensorDataset(x[:400], weed[:400]), batch_size=10, shuffle=True)
    model = FieldNet(None if healthy else nn.Sigmoid())
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        total = 0.0
        for image, mask in loader:
            loss = criterion(model(image), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            out = model(x[400:])
            said = out > (0 if healthy else 0.5)
            val = criterion(out, weed[400:]).item()
        truth = weed[400:] > 0
        overlap = (said & truth).sum() / (said | truth).sum()
        print(f"{epoch}: loss {total / len(loader):.3f} val {val:.3f} overlap {overlap:.3f}")


if __name__ == "__main__":
    main()
