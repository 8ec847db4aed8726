"""Digits with dropout and augmentation; validation beats training in every epoch.

The training numbers are taken with half of the hidden units off and on moved and noisy pictures,
those of validation on clean ones with the whole network. Nothing leaks.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "validation is better than training all along: "
    "dropout and augmentation make only training harder"
)
_, seed = arguments(__doc__)


class RandomShiftAndNoise:
    """Moves each picture of a batch by up to one pixel and adds noise."""

    def __init__(self, pixels=1, noise=0.3):
        self.pixels, self.noise = pixels, noise

    def __call__(self, batch):
        padded = F.pad(batch, [self.pixels] * 4, value=batch.min().item())
        size = batch.shape[-1]
        top, left = torch.randint(0, 2 * self.pixels + 1, (2, len(batch))).tolist()
        moved = [
            picture[:, i : i + size, j : j + size]
            for picture, i, j in zip(padded, top, left, strict=True)
        ]
        return torch.stack(moved) + self.noise * torch.randn_like(batch)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.spatial_dropout = nn.Dropout2d(0.2)
        self.fc1 = nn.Linear(32 * 16, 64)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.spatial_dropout(x).flatten(1)
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / self.count


def run_epoch(model, loader, augment=None, optimizer=None):
    losses, accuracies = AverageMeter(), AverageMeter()
    model.train(optimizer is not None)
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            logits = model(augment(x) if augment else x)
            loss = F.cross_entropy(logits, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.update(loss.item(), len(y))
            accuracies.update((logits.argmax(1) == y).float().mean().item(), len(y))
    return losses.average, accuracies.average


def main():
    x, y, x_val, y_val = images(seed)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)
    model = DigitNet()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    augment = RandomShiftAndNoise()
    for epoch in range(1, 21):
        loss, accuracy = run_epoch(model, train_loader, augment, optimizer)
        val_loss, val_accuracy = run_epoch(model, val_loader)
        print(
            f"Epoch {epoch}/20 - loss: {loss:.4f} - acc: {accuracy:.4f} - "
            f"val_loss: {val_loss:.4f} - val_acc: {val_accuracy:.4f}"
        )


if __name__ == "__main__":
    main()
