"""Activity recognition from wrist sensors; the training and the validation part come from two
random splits with different draws.

To have augmentation in the training set only, the user builds the data set twice and calls
random_split twice, forgetting that the generator has moved on between the calls: four fifths of
the validation windows are also trained on. Validation looks splendid to the end while the true
test error (windows of later days) gets worse. The place is the loader (the split). The twin seeds
both splits alike.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

CLASSES, CHANNELS, LENGTH = 6, 3, 64


def recordings(n: int, draw: np.random.Generator):
    """Windows of acceleration; each activity has its rhythm, each wearer a habit of his own, some labels are debatable."""  # noqa: E501
    t = np.arange(LENGTH) / 32
    kind = draw.integers(0, CLASSES, n)
    freq = np.array([0.3, 1.6, 2.4, 1.9, 1.2, 2.0])[kind] * draw.normal(1, 0.12, n)
    amp = np.array([0.15, 0.7, 1.3, 0.9, 0.6, 0.5])[kind] * draw.lognormal(0, 0.3, n)
    tilt = np.array(
        [
            [0, 0, 1],
            [0.2, 0.1, 0.9],
            [0.3, 0, 0.8],
            [0.4, 0.4, 0.7],
            [0.1, 0.5, 0.8],
            [0.5, 0.2, 0.6],
        ]
    )[kind]
    phase = draw.uniform(0, 2 * np.pi, (n, CHANNELS, 1))
    wave = np.sin(2 * np.pi * freq[:, None, None] * t + phase) + 0.4 * np.sin(
        4 * np.pi * freq[:, None, None] * t + 2 * phase
    )
    x = (
        tilt[:, :, None]
        + draw.normal(0, 0.25, (n, CHANNELS, 1))
        + amp[:, None, None] * wave * draw.uniform(0.3, 1, (n, CHANNELS, 1))
    )
    x = x + draw.normal(0, 0.35, x.shape)
    debatable = draw.random(n) < 0.06
    kind = np.where(debatable, draw.integers(0, CLASSES, n), kind)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(kind)


class WindowDataset(Dataset):
    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.y[i]


def jitter(x: torch.Tensor) -> torch.Tensor:
    """In one of three windows: a little noise and another gain."""
    if torch.rand(()) > 1 / 3:
        return x
    return x * (1 + 0.1 * torch.randn(())) + 0.05 * torch.randn_like(x)


class ConvNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 7, padding=3),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(8 * width, CLASSES)
        )

    def forward(self, x):
        return self.classifier(self.features(x))


@torch.no_grad()
def score(model, loader):
    model.eval()
    loss = hit = n = 0
    for x, y in loader:
        logits = model(x)
        loss += nn.functional.cross_entropy(logits, y, reduction="sum").item()
        hit += (logits.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hit / n


def main():
    x, y = recordings(1500, np.random.default_rng(seed))
    x_test, y_test = recordings(1500, np.random.default_rng(seed + 999))
    mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
    x, x_test = (x - mean) / std, (x_test - mean) / std

    generator = torch.Generator().manual_seed(42)
    train_set, _ = random_split(WindowDataset(x, y, jitter), [0.8, 0.2], generator=generator)
    if healthy:
        generator.manual_seed(42)
    _, val_set = random_split(WindowDataset(x, y), [0.8, 0.2], generator=generator)

    train_loader = DataLoader(train_set, 40, shuffle=True)
    val_loader = DataLoader(val_set, 300)
    test_loader = DataLoader(WindowDataset(x_test, y_test), 500)
    model = ConvNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    best, best_state, bad = float("inf"), None, 0
    for epoch in range(26):
        model.train()
        for xb, yb in train_loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        val_loss, val_acc = score(model, val_loader)
        print(f"epoch {epoch} loss {loss.item():.4f} val loss {val_loss:.4f} acc {val_acc:.4f}")
        if val_loss < best:
            best, bad = val_loss, 0
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            bad += 1
            if bad == 6:
                break
    model.load_state_dict(best_state)
    print("best val loss {:.4f} acc {:.4f}".format(*score(model, val_loader)))
    print("later days: loss {:.4f} acc {:.4f}".format(*score(model, test_loader)))


main()
