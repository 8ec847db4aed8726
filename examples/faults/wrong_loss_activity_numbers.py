"""A one-dimensional CNN for recognising six activities from an accelerometer, trained by MSE on
the class number.

The user gives the net one output and fits it to the number of the class (0 to 5) by MSELoss,
rounding for the prediction, though the numbers have no order. The place is the loss (and the
single output of the head).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss", "head", "9", "*.9")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def recordings(n, seed, length=64):
    r = np.random.default_rng(seed)
    label = r.integers(0, 6, n)
    t = np.arange(length) / 20
    rate = np.array([1.6, 0.0, 1.9, 2.8, 0.0, 1.5])[
        label
    ]  # walk, sit, stairs up, run, lie, stairs down
    power = np.array([0.5, 0.03, 0.45, 1.3, 0.03, 0.6])[label]
    tilt = np.array(
        [[0, 0, 1], [0.5, 0.2, 0.8], [0.3, 0, 0.95], [0.1, 0, 1], [0, 1, 0.1], [-0.25, 0, 0.95]]
    )[label]
    rate = rate * r.normal(1, 0.08, n)
    phase = r.uniform(0, 6.283, n)
    wave = np.sin(6.283 * rate[:, None] * t + phase[:, None])
    wave = wave + 0.4 * np.sin(12.566 * rate[:, None] * t + 2 * phase[:, None])
    x = (
        tilt[:, :, None]
        + r.normal(0, 0.2, (n, 3, 1))
        + power[:, None, None] * wave[:, None, :] * np.array([0.5, 0.3, 1.0])[:, None]
    )
    x = x + r.normal(0, 0.12, x.shape)
    x = (x - x.mean((0, 2), keepdims=True)) / x.std((0, 2), keepdims=True)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


def net(outputs):
    return nn.Sequential(
        nn.Conv1d(3, 24, 7, padding=3),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(24, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Flatten(),
        nn.Linear(32 * 16, 48),
        nn.ReLU(),
        nn.Linear(48, outputs),
    )


train, val = random_split(recordings(2400, seed), [1800, 600])
model = net(6 if healthy else 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)


def loss_of(output, label):
    if healthy:
        return nn.functional.cross_entropy(output, label)
    return nn.functional.mse_loss(output.squeeze(1), label.float())


def predicted(output):
    return output.argmax(1) if output.shape[1] > 1 else output.squeeze(1).round().long()


for epoch in range(8):
    model.train()
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(
            (predicted(model(x)) == y).sum().item() for x, y in DataLoader(val, batch_size=200)
        )
    print(f"epoch {epoch} loss {loss.item():.3f} validation accuracy {right / len(val):.3f}")
