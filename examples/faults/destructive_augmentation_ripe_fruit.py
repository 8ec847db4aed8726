"""A network sorts fruit by ripeness; hue jitter over the whole colour circle wipes it out.

The person wanted strong augmentation and set hue to 0.5, the largest value allowed, next to
brightness and flips. Unripe, ripe and overripe fruit differ by their hue above all, so the
training pictures no longer say which they are. The place is the input, the training transform.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

STAGES, SIDE = 4, 20
JITTER = {"brightness": 0.2, "hue": 0.02 if healthy else 0.5}
TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
FROM_YIQ = torch.linalg.inv(TO_YIQ)


def turn_hue(picture, share):
    angle = 2 * math.pi * share
    turn = torch.eye(3)
    turn[1:, 1:] = torch.tensor(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    )
    return torch.einsum("ij,jhw->ihw", FROM_YIQ @ turn @ TO_YIQ, picture)


class FruitPictures(Dataset):
    """Round fruit on a table cloth of any colour; spots come a little more often with age."""

    def __init__(self, n, generator, train):
        self.train = train
        self.stage = torch.randint(0, STAGES, (n,), generator=generator)
        skins = torch.tensor([[0.25, 0.6, 0.2], [0.6, 0.6, 0.2], [0.75, 0.4, 0.2], [0.7, 0.2, 0.2]])
        yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
        centre = 7 + 6 * torch.rand(n, 2, 1, 1, generator=generator)
        away = ((yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2).sqrt()
        radius = 3.5 + 2.5 * torch.rand(n, 1, 1, generator=generator)
        inside = (away < radius).float().unsqueeze(1)
        light = 0.7 + 0.6 * torch.rand(n, 1, 1, 1, generator=generator)
        tint = skins[self.stage] + 0.05 * torch.randn(n, 3, generator=generator)
        cloth = torch.rand(n, 3, 1, 1, generator=generator)
        picture = inside * tint[:, :, None, None] * light + (1 - inside) * cloth
        spot = torch.rand(n, 1, SIDE, SIDE, generator=generator)
        spot = (spot < 0.01 + 0.01 * self.stage.view(-1, 1, 1, 1)).float() * inside
        picture = picture * (1 - 0.6 * spot)
        self.pictures = picture + 0.05 * torch.randn(picture.shape, generator=generator)

    def __len__(self):
        return len(self.stage)

    def __getitem__(self, i):
        picture = self.pictures[i]
        if self.train:
            hue, bright = (torch.rand(2) * 2 - 1).tolist()
            picture = turn_hue(picture, hue * JITTER["hue"])
            picture = picture * (1 + bright * JITTER["brightness"])
            if torch.rand(()) < 0.5:
                picture = picture.flip(-1)
        return (picture - 0.45) / 0.25, self.stage[i]


def main():
    generator = torch.Generator().manual_seed(seed)
    train = DataLoader(
        FruitPictures(1100, generator, train=True), batch_size=32, shuffle=True, drop_last=True
    )
    val = DataLoader(FruitPictures(300, generator, train=False), batch_size=100)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(128, STAGES),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1.5e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.3)
    for epoch in range(10):
        net.train()
        train_loss = train_right = seen = 0
        for x, y in train:
            logits = net(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * len(y)
            train_right += (logits.argmax(1) == y).sum().item()
            seen += len(y)
        schedule.step()
        net.eval()
        with torch.no_grad():
            pairs = [(net(x), y) for x, y in val]
        logits, y = (torch.cat(part) for part in zip(*pairs, strict=True))
        accuracy = (logits.argmax(1) == y).float().mean().item()
        print(
            f"Epoch {epoch + 1:2d} train loss {train_loss / seen:.3f} acc {train_right / seen:.3f}"
            f" | val loss {criterion(logits, y).item():.3f} acc {accuracy:.3f}"
        )


main()
