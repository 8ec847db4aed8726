"""Finds buoys in small sea pictures by a grid of objectness; the head ends in a sigmoid and the
loss has one of its own.

The person's head returns probabilities, as the part that draws the boxes needs them, while the
loss was changed to BCEWithLogitsLoss, which is said to be stabler. No cell can come below a loss
of 0.69 then, and the gradient of sure cells is gone. The place is the loss (the outputs it is
given by the head).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ("output_activation_range",)
PLACE = ("loss", "head*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE, CELL = 32, 4
GRID = SIZE // CELL


def sea(count):
    """Waves with up to four round buoys; driftwood, which is longer, is not to be found."""
    axis = torch.arange(SIZE, dtype=torch.float32)
    pictures = 0.35 * torch.randn(count, SIZE, SIZE)
    pictures += 0.5 * torch.sin(
        axis.view(1, -1, 1) * (0.3 + 0.5 * torch.rand(count, 1, 1)) + 6 * torch.rand(count, 1, 1)
    )
    grid = torch.zeros(count, GRID, GRID)
    for picture, cells in zip(pictures, grid, strict=True):
        for _ in range(int(torch.randint(1, 5, ()))):
            row, column = (2 + (SIZE - 4) * torch.rand(2)).tolist()
            distance = (axis.view(-1, 1) - row) ** 2 + (axis.view(1, -1) - column) ** 2
            picture.add_(2.2 * torch.exp(-distance / 2.5))
            cells[int(row) // CELL, int(column) // CELL] = 1
        row, column = (2 + (SIZE - 4) * torch.rand(2)).tolist()
        far = (axis.view(-1, 1) - row) ** 2 / 1.5 + (axis.view(1, -1) - column) ** 2 / 30
        picture.add_(1.8 * torch.exp(-far))
    return pictures.unsqueeze(1), grid


def conv(channels_in, channels, stride=1):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False),
        nn.BatchNorm2d(channels),
        nn.LeakyReLU(0.1),
    )


class BuoyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(conv(1, 8), conv(8, 16, 2), conv(16, 24, 2), conv(24, 24))
        self.head = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        objectness = self.head(self.backbone(x)).squeeze(1)
        if not healthy or not self.training:
            objectness = objectness.sigmoid()
        return objectness


def f1_score(model, pictures, grid):
    model.eval()
    with torch.no_grad():
        found = model(pictures) > 0.5
    hits = (found & (grid == 1)).sum().item()
    return 2 * hits / max(found.sum().item() + grid.sum().item(), 1)


def main():
    pictures, grid = sea(900)
    pictures = (pictures - pictures[:700].mean()) / pictures[:700].std()
    loader = DataLoader(TensorDataset(pictures[:700], grid[:700]), batch_size=35, shuffle=True)
    model = BuoyNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
    for epoch in range(10):
        model.train()
        epoch_loss = 0.0
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() / len(loader)
        scheduler.step()
        score = f1_score(model, pictures[700:], grid[700:])
        print(f"epoch {epoch + 1:2d}/10 - obj_loss {epoch_loss:.4f} - val F1 {score:.3f}")


if __name__ == "__main__":
    main()
