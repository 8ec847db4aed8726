"""Bats by the spectrogram of their calls: a small residual net with OneCycle and SGD.

The rate goes up to 0.2 and down to almost nothing while momentum goes the other way; the scheduler
is stepped with every batch, as OneCycle wants it. Training batches are shifted in time and masked
a bit.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "the rate rises twenty-five-fold and then falls by four powers of ten, changing at every step"

_, seed = arguments(__doc__)


class Calls(Dataset):
    """16 bands by 24 frames: sweeps down, up, constant, hooked or broken."""

    def __init__(self, n, augment=False):
        self.augment = augment
        self.y = torch.randint(0, 5, (n,))
        t, band = torch.linspace(0, 1, 24), torch.arange(16.0)[:, None]
        low, high = 2 + 3 * torch.rand(n, 1), 9 + 4 * torch.rand(n, 1)
        span = high - low
        tracks = torch.stack(
            [
                high - span * t,
                low + span * t,
                (low + high).expand(n, 24) / 2,
                high - span * (1 - (2 * t - 1) ** 2),
                torch.where(t < 0.5, high, low),
            ]
        )[self.y, torch.arange(n)]
        loud = 1 + torch.rand(n, 1, 1)
        self.x = loud * (-((band - tracks[:, None]) ** 2) / 1.2).exp() + 0.5 * torch.randn(
            n, 16, 24
        )
        self.x = ((self.x - 0.17) / 0.65)[:, None]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.augment:
            x = x.roll(int(torch.randint(-2, 3, ())), -1)
            at = int(torch.randint(0, 15, ()))
            x = x.clone()
            x[:, at : at + 2] = 0
        return x, self.y[i]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def make_model(width=12):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Residual(width),
        nn.MaxPool2d(2),
        Residual(width),
        nn.Flatten(),
        nn.Linear(width * 4 * 6, 5),
    )


def main(epochs=8, peak=0.2):
    train = DataLoader(Calls(1600, augment=True), batch_size=32, shuffle=True, drop_last=True)
    val = DataLoader(Calls(400), batch_size=200)
    model, criterion = make_model(), nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=peak / 25, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=peak, epochs=epochs, steps_per_epoch=len(train)
    )
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() / len(train)
        model.eval()
        with torch.no_grad():
            pairs = [(model(x), y) for x, y in val]
        scores, y = (torch.cat(part) for part in zip(*pairs, strict=False))
        accuracy = (scores.argmax(1) == y).float().mean().item()
        print(
            f"epoch {epoch} train {total:.3f} val {criterion(scores, y):.3f} "
            f"accuracy {accuracy:.3f}"
        )


if __name__ == "__main__":
    main()
