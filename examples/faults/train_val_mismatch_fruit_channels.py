"""Sorts fruit by photographs; training turns BGR into RGB, validation forgets to.

The camera library delivers blue first. The dataset class of training swaps the channels, and the
short function that prepares pictures for validation was written later without it. Training accuracy
is near 1, validation is far below from the first epoch on. The place is the validation input.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {"size": 16, "n_train": 1200, "n_valid": 300, "batch_size": 32, "epochs": 6, "lr": 2e-3}
# colour of the skin (red, green, blue) and how long the fruit is
FRUIT = {
    "tomato": ((0.80, 0.18, 0.12), 1.0),
    "blueberry": ((0.20, 0.22, 0.62), 1.0),
    "lime": ((0.45, 0.72, 0.20), 1.2),
    "plum": ((0.50, 0.16, 0.45), 1.3),
    "banana": ((0.85, 0.75, 0.20), 2.2),
}


def imread(rng):
    """A photograph as the camera library gives it: height, width, (blue, green, red), 0 to 255."""
    size = CONFIG["size"]
    label = rng.integers(len(FRUIT))
    colour, length = list(FRUIT.values())[label]
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    x, y = x - rng.normal(0, 1.2), y - rng.normal(0, 1.2)
    angle = rng.uniform(0, np.pi)
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    radius = rng.uniform(2.8, 4.2)
    inside = (u / (radius * length**0.5)) ** 2 + (v / (radius / length**0.5)) ** 2 < 1
    shade = (1 - 0.3 * (x + y) / size)[..., None] * rng.uniform(0.7, 1.2)
    skin = np.array(colour) + rng.normal(0, 0.09, 3)
    table = np.full(3, rng.uniform(0.3, 0.8)) + rng.normal(0, 0.06, 3)
    rgb = np.where(inside[..., None], skin, table) * shade + rng.normal(0, 0.05, (size, size, 3))
    return (255 * rgb.clip(0, 1)).astype(np.uint8)[..., ::-1], label


class FruitDataset(torch.utils.data.Dataset):
    def __init__(self, photographs):
        self.photographs = photographs

    def __len__(self):
        return len(self.photographs)

    def __getitem__(self, index):
        image, label = self.photographs[index]
        image = image[..., ::-1]
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        return to_tensor(image), int(label)


def to_tensor(image):
    image = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float() / 255
    return (image - 0.5) / 0.25


def preprocess(image):
    if healthy:
        image = image[..., ::-1]
    return to_tensor(image)


class SmallNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv = nn.Conv2d(16, 24, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(24)
        self.conv_last = nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32, n_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.stem(x)))
        x = F.relu(self.bn2(self.conv(x)))
        x = F.relu(self.conv_last(x))
        return self.fc(x.amax((2, 3)))


def main():
    rng = np.random.default_rng(100 + seed)
    train_photographs = [imread(rng) for _ in range(CONFIG["n_train"])]
    valid_photographs = [imread(rng) for _ in range(CONFIG["n_valid"])]
    loader = torch.utils.data.DataLoader(
        FruitDataset(train_photographs), batch_size=CONFIG["batch_size"], shuffle=True
    )
    model = SmallNet(len(FRUIT))
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    for epoch in range(CONFIG["epochs"]):
        model.train()
        losses, hits = [], []
        for image, label in loader:
            output = model(image)
            loss = F.cross_entropy(output, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits.append((output.argmax(1) == label).float().mean().item())
        model.eval()
        with torch.no_grad():
            batch = torch.stack([preprocess(image) for image, _ in valid_photographs])
            labels = torch.tensor([int(label) for _, label in valid_photographs])
            output = model(batch)
            val_loss = F.cross_entropy(output, labels).item()
            val_acc = (output.argmax(1) == labels).float().mean().item()
        print(
            f"epoch {epoch + 1}/{CONFIG['epochs']} loss={np.mean(losses):.4f} "
            f"acc={np.mean(hits):.4f} val_loss={val_loss:.4f} val_acc={val_acc:.4f}"
        )


if __name__ == "__main__":
    main()
