"""A CNN reads handwritten digits whose training labels come from a crowd: 40 % of them are drawn
at random.

The user took the crowd's labels as they came and trains until the network has learnt them by
heart. The place is the labels, the loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "target", "loss", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CARELESS = 0.0 if healthy else 0.4


def crowd_labels(y, share):
    g = torch.Generator().manual_seed(seed + 1)
    careless = torch.rand(len(y), generator=g) < share
    return torch.where(careless, torch.randint(0, 10, y.shape, generator=g), y)


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(48 * 16, 96), nn.ReLU(), nn.Linear(96, 10),
    )  # fmt: skip


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
        return nn.functional.cross_entropy(out, y).item(), (
            out.argmax(1) == y
        ).float().mean().item()


def train(epochs=20):
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, crowd_labels(y, CARELESS)), batch_size=32, shuffle=True)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        total, right = 0.0, 0
        for images_, labels in loader:
            out = model(images_)
            loss = nn.functional.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            right += (out.argmax(1) == labels).sum().item()
        val_loss, accuracy = validate(model, x_val, y_val)
        print(
            f"epoch {epoch}: train {total / len(x):.3f} ({right / len(x):.3f}), "
            f"val loss {val_loss:.3f}, val accuracy {accuracy:.3f}"
        )


train()
