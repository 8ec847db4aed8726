"""Tells harmless from dangerous skin lesions in small images; the validation is done in training
mode.

The function that measures the accuracy was copied from a project without dropout, where it made no
difference that the network isn't switched over. Here half of the units are dropped while measuring,
and the batch norms go by the batch and learn from the validation images.
The place is the validation.
The twin switches to evaluation and back.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIZE = 20


def lesions(n):
    """Dangerous ones have a ragged rim, an uneven colour and are not round."""
    bad = (torch.rand(n) < 0.4).float().view(n, 1, 1)
    axis = torch.linspace(-1, 1, SIZE)
    row, column = torch.meshgrid(axis, axis, indexing="ij")
    row = row - 0.15 * torch.randn(n, 1, 1)
    column = column - 0.15 * torch.randn(n, 1, 1)
    stretch = 1 + bad * 0.5 * torch.rand(n, 1, 1)
    angle = torch.atan2(row, column)
    rim = 0.55 + bad * 0.12 * torch.sin(5 * angle + 6.283 * torch.rand(n, 1, 1))
    inside = torch.sigmoid(12 * (rim - (stretch * row**2 + column**2).sqrt()))
    mottle = 0.15 + 0.3 * bad
    colour = 0.7 + mottle * torch.sin(7 * row + 6.283 * torch.rand(n, 1, 1)) * torch.cos(6 * column)
    red = 0.4 + 0.3 * inside * colour
    blue = 0.5 - 0.5 * inside * colour
    image = torch.stack([red, 0.5 * (red + blue), blue], 1)
    image = image * torch.exp(0.2 * torch.randn(n, 1, 1, 1)) + 0.12 * torch.randn(n, 3, SIZE, SIZE)
    return (image - 0.4) / 0.2, bad.flatten()


def block(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)
    )


model = nn.Sequential(
    block(3, 12),
    block(12, 24),
    nn.Flatten(),
    nn.Dropout(0.4),
    nn.Linear(24 * 25, 32),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(32, 1),
    nn.Flatten(0),
)
train_loader = DataLoader(TensorDataset(*lesions(800)), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(*lesions(400)), batch_size=16)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)
bce = nn.BCEWithLogitsLoss()


def check(loader):
    if healthy:
        model.eval()
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for image, bad in loader:
            out = model(image)
            loss += bce(out, bad).item() * len(bad)
            right += ((out > 0).float() == bad).sum().item()
            seen += len(bad)
    model.train()
    return loss / seen, right / seen


for epoch in range(1, 15):
    total = 0.0
    for image, bad in train_loader:
        loss = bce(model(image), bad)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    if epoch % 2 == 0:
        val_loss, accuracy = check(val_loader)
        print(
            f"epoch {epoch}: train loss {total / len(train_loader):.4f}  "
            f"val loss {val_loss:.4f}  val accuracy {accuracy:.3f}"
        )
