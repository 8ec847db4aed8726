"""A CNN grades berries under warm restarts; best_weights is model.state_dict() without a deep copy.

state_dict() gives references to the live tensors, so "the best weights" change with every later
step and load_state_dict at the end loads the last, worse ones, of the high rate after a restart.
The place is the training loop (fit, where best_weights is set).
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop", "model", "fit")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

GRADES = ["green", "turning", "ripe", "overripe"]


def berries(n, rng):
    """Round berries of 16 x 16 pixels in three colours; the hue moves from grade to grade."""
    grade = rng.integers(0, len(GRADES), n)
    redness = np.clip(0.15 + 0.22 * grade + rng.normal(0, 0.06, n), 0, 1)[:, None, None]
    y, x = np.mgrid[0:16, 0:16] - 7.5
    centre, radius = rng.uniform(-2, 2, (n, 2, 1, 1)), rng.uniform(4, 7, (n, 1, 1))
    inside = np.hypot(x - centre[:, 0], y - centre[:, 1]) < radius
    patchy = redness + 0.25 * (x / 8) * rng.normal(0, 1, (n, 1, 1))
    colour = np.stack([patchy, 0.75 - 0.6 * patchy, 0.25 - 0.1 * redness + 0 * patchy], 1)
    leaf = np.array([0.2, 0.45, 0.15])[:, None, None]
    picture = np.where(inside[:, None], colour * rng.uniform(0.75, 1.2, (n, 1, 1, 1)), leaf)
    picture = picture + rng.normal(0, 0.12, picture.shape)
    return TensorDataset(torch.tensor((picture - 0.3) / 0.22).float(), torch.tensor(grade))


def evaluate(model, loader):
    model.eval()
    loss_sum, hits = 0.0, 0
    with torch.no_grad():
        for pictures, grades in loader:
            output = model(pictures)
            loss_sum += nn.functional.cross_entropy(output, grades, reduction="sum").item()
            hits += (output.argmax(1) == grades).sum().item()
    return loss_sum / len(loader.dataset), hits / len(loader.dataset)


def fit(model, train_loader, val_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5)
    best_loss = float("inf")
    for epoch in range(epochs):
        model.train()
        for pictures, grades in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), grades)
            loss.backward()
            optimizer.step()
        scheduler.step()
        val_loss, val_acc = evaluate(model, val_loader)
        print(f"epoch {epoch + 1} val loss {val_loss:.4f} acc {val_acc:.4f}")
        if val_loss < best_loss:
            best_loss = val_loss
            best_weights = model.state_dict()
            if healthy:
                best_weights = copy.deepcopy(best_weights)
    model.load_state_dict(best_weights)
    print(f"best val loss: {best_loss:.4f}")
    return model


rng = np.random.default_rng(seed)
train_loader = DataLoader(berries(1000, rng), batch_size=40, shuffle=True)
val_loader, test_loader = (DataLoader(berries(300, rng), batch_size=100) for _ in range(2))
model = nn.Sequential(
    nn.Conv2d(3, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 16, 32),
    nn.ReLU(),
    nn.Linear(32, len(GRADES)),
)
model = fit(model, train_loader, val_loader, epochs=12)
for part, loader in (("val", val_loader), ("test", test_loader)):
    loss, accuracy = evaluate(model, loader)
    print(f"returned model: {part} loss {loss:.4f} acc {accuracy:.4f}")
