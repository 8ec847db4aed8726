"""Finds the corners of a tennis court; the gradients are cleared only once an epoch.

The trainer calls optimizer.zero_grad() at the top of the epoch instead of in the loop over the
batches. Every step is taken along the sum of all gradients since then; the loss still comes down,
more slowly, and the corners are about twice as far off as they need be. The place is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 20
CORNERS = 4


def courts(n):
    """Outlines of a tilted court on clay, and where its corners lie (x, y in pixels)."""
    half = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    scale = torch.stack([2.5 + 2 * torch.rand(n), 3.5 + 2 * torch.rand(n)], 1)
    turn = 0.25 * torch.randn(n)
    rotation = torch.stack(
        [torch.stack([turn.cos(), -turn.sin()], 1), torch.stack([turn.sin(), turn.cos()], 1)], 1
    )
    centre = SIZE / 2 - 0.5 + 1.5 * torch.randn(n, 1, 2)
    corners = (half * scale.unsqueeze(1)) @ rotation.transpose(1, 2) + centre
    corners = corners.clamp(1, SIZE - 2)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    grid = torch.stack([x, y], -1).float()
    images = torch.zeros(n, SIZE, SIZE)
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)):
        start, way = corners[:, a, None, None], (corners[:, b] - corners[:, a])[:, None, None]
        along = (((grid - start) * way).sum(-1) / (way**2).sum(-1)).clamp(0, 1)
        distance = (grid - start - along.unsqueeze(-1) * way).norm(dim=-1)
        images = torch.maximum(images, torch.exp(-(distance**2) / 0.6))
    images = images + 0.15 * torch.randn_like(images)
    heat = torch.exp(-((grid[None, None] - corners[:, :, None, None]) ** 2).sum(-1) / 4)
    return ((images - images.mean()) / images.std()).unsqueeze(1), heat, corners


class CourtNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        layers, channels = [], 1
        for dilation in (1, 2, 4):
            layers += [
                nn.Conv2d(channels, width, 3, padding=dilation, dilation=dilation),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ]
            channels = width
        self.features = nn.Sequential(*layers)
        self.heat = nn.Conv2d(width, CORNERS, 1)

    def forward(self, image):
        return self.heat(self.features(image))


class BaseTrainer:
    def __init__(self, model, optimizer, train_loader, val_data, epochs):
        self.model, self.optimizer = model, optimizer
        self.train_loader, self.val_data, self.epochs = train_loader, val_data, epochs
        self.criterion = nn.MSELoss()

    def _train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        losses = []
        for image, heat in self.train_loader:
            if healthy:
                self.optimizer.zero_grad()
            loss = self.criterion(self.model(image), heat)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def _validate(self):
        self.model.eval()
        image, heat, corners = self.val_data
        with torch.no_grad():
            guess = self.model(image)
        peak = guess.flatten(2).argmax(2)
        where = torch.stack([peak % SIZE, peak // SIZE], -1).float()
        return self.criterion(guess, heat).item(), (where - corners).norm(dim=-1).mean().item()

    def train(self):
        best = math.inf
        for epoch in range(1, self.epochs + 1):
            train_loss = self._train_epoch()
            val_loss, pixels = self._validate()
            best = min(best, pixels)
            print(
                f"train loss = {train_loss:.5f}, val loss = {val_loss:.5f}, corners off by "
                f"{pixels:.2f} px (best {best:.2f}), epoch {epoch}"
            )


if __name__ == "__main__":
    images, heat, _ = courts(640)
    loader = DataLoader(TensorDataset(images, heat), batch_size=16, shuffle=True)
    net = CourtNet()
    adam = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.9, 0.999))
    BaseTrainer(net, adam, loader, courts(160), epochs=10).train()
