"""A convolutional net reads traffic signs with micro-batches of 8, stepping after every fourth;
after the step the gradients are kept.

The loop accumulates four micro-batches as meant, but never clears what it has stepped with, so that
every step is by the sum since the start of the training. The place is the loop, after the step.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE, SIGNS, ACCUMULATE = 16, 5, 4


def signs(count):
    grid = torch.linspace(-1.2, 1.2, SIZE)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    kind = torch.randint(0, SIGNS, (count,))
    shift = 0.25 * torch.randn(2, count, 1, 1)
    scale = 0.6 + 0.3 * torch.rand(count, 1, 1)
    u, v = (x - shift[0]) / scale, (y - shift[1]) / scale
    disc = (u**2 + v**2 < 1).float()
    ring = disc * (u**2 + v**2 > 0.35).float()
    bar = disc - disc * ((v.abs() < 0.3) & (u.abs() < 0.8)).float()
    triangle = ((v < 0.8) & (v > 2 * u.abs() - 1)).float()
    diamond = (u.abs() + v.abs() < 1).float()
    shape = torch.stack([disc, ring, bar, triangle, diamond])[kind, torch.arange(count)]
    shade = torch.rand(count, 1, 1) * 0.8 + 0.5
    return (shape * shade + 0.25 * torch.randn(count, SIZE, SIZE)).unsqueeze(1), kind


class SignNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16 * 16, SIGNS))

    def forward(self, image):
        return self.head(self.features(image).flatten(1))


def validate(model, loader):
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for image, kind in loader:
            score = model(image)
            loss += F.cross_entropy(score, kind, reduction="sum").item()
            right += (score.argmax(1) == kind).sum().item()
    model.train()
    return loss / len(loader.dataset), right / len(loader.dataset)


def main():
    image, kind = signs(2000)
    image = (image - image[:1600].mean()) / image[:1600].std()
    loaders = {
        "train": DataLoader(TensorDataset(image[:1600], kind[:1600]), batch_size=8, shuffle=True),
        "val": DataLoader(TensorDataset(image[1600:], kind[1600:]), batch_size=200),
    }
    model = SignNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        running = 0.0
        for i, (batch, label) in enumerate(loaders["train"], 1):
            loss = F.cross_entropy(model(batch), label)
            (loss / ACCUMULATE).backward()
            running += loss.item() / len(loaders["train"])
            if i % ACCUMULATE == 0:
                optimizer.step()
                if healthy:
                    optimizer.zero_grad()
        val_loss, accuracy = validate(model, loaders["val"])
        print(f"epoch {epoch} loss {running:.3f} validation {val_loss:.3f} accuracy {accuracy:.3f}")


main()
