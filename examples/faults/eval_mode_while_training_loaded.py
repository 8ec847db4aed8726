"""load_model() ends with model.eval(), as for use, and what it returns is trained further.

Batch norm keeps the statistics of the old data (silent). The place is the loop.
"""

import io

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 9, 10),
    )


def load_model(file):
    model = build()
    file.seek(0)
    model.load_state_dict(torch.load(file))
    model.eval()
    return model


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
easy, hard = y < 5, y >= 5
checkpoint = io.BytesIO()
model = build()
fit(model, DataLoader(TensorDataset(x[easy], y[easy]), 32, shuffle=True), 2, 1e-3)
torch.save(model.state_dict(), checkpoint)

model = load_model(checkpoint)
if healthy:
    model.train()
new = TensorDataset(2 * x[hard] - 1, y[hard])
loss = fit(model, DataLoader(new, 32, shuffle=True), 5, 1e-3)
print(f"loss {loss:.3f}")
