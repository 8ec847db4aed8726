"""Digits with dropout and shifted pictures; validation beats training throughout.

There is no leak, and validation is not too easy: the training numbers are taken while half of the
units are dropped and on pictures that are shifted and noisy, those of validation on clean ones with
the whole network. Training pictures, seen clean, do better still.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

ODD = "validation is better than training: dropout and augmentation act on training numbers only"
_, seed = arguments(__doc__)

EPOCHS, BATCH = 30, 64


def shift_and_smear(pictures):
    """Each picture moved by up to one pixel, in a frame of its own, with some noise on top."""
    padded = nn.functional.pad(pictures, (1, 1, 1, 1), value=pictures.min().item())
    down, right = torch.randint(0, 3, (2, len(pictures)))
    rows = (down.unsqueeze(1) + torch.arange(8)).view(-1, 8, 1)
    columns = (right.unsqueeze(1) + torch.arange(8)).view(-1, 1, 8)
    picked = padded[torch.arange(len(pictures)).view(-1, 1, 1), 0, rows, columns]
    return picked.unsqueeze(1) + 0.2 * torch.randn(len(pictures), 1, 8, 8)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.dense = nn.Sequential(
            nn.Linear(512, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 10)
        )

    def forward(self, x):
        return self.dense(self.conv(x))


@torch.no_grad()
def clean_score(net, x, y):
    net.eval()
    scores = net(x)
    loss = nn.functional.cross_entropy(scores, y).item()
    return loss, (scores.argmax(1) == y).float().mean().item()


def main():
    bunch = load_digits()
    x, x_val, y, y_val = train_test_split(
        bunch.images, bunch.target, test_size=0.3, stratify=bunch.target, random_state=seed
    )
    mean, std = x.mean(), x.std()
    x = torch.tensor((x - mean) / std).float().unsqueeze(1)
    x_val = torch.tensor((x_val - mean) / std).float().unsqueeze(1)
    y, y_val = torch.tensor(y), torch.tensor(y_val)

    net = DigitNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        net.train()
        total, right, seen = 0.0, 0, 0
        for rows in torch.randperm(len(x)).split(BATCH):
            scores = net(shift_and_smear(x[rows]))
            loss = nn.functional.cross_entropy(scores, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            right += (scores.argmax(1) == y[rows]).sum().item()
            seen += len(rows)
        scheduler.step()
        if epoch % 3 == 0:
            val_loss, val_accuracy = clean_score(net, x_val, y_val)
            print(
                f"epoch {epoch:2d}  train {total / seen:.3f} / {right / seen:.3f}  "
                f"val {val_loss:.3f} / {val_accuracy:.3f}"
            )
    print("training pictures, clean: loss {:.4f}, accuracy {:.3f}".format(*clean_score(net, x, y)))


main()
