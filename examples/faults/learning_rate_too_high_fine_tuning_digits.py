"""A CNN pre-trained on the digits 0-4 and fine-tuned on few images of 5-9 by Adam at 0.2.

The second stage has its own rate, typed with some zeros missing. The first steps wipe out what the
first stage had learned, and the small set cannot bring it back. The place is the second optimizer.
The twin fine-tunes at 0.0005.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
criterion = nn.CrossEntropyLoss()
body = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def fit(model, x, y, x_val, y_val, lr, epochs, name):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        accuracy = evaluate(model, x_val, y_val)
        print(f"{name} {epoch + 1}: loss {total / len(loader):.3f}  val accuracy {accuracy:.3f}")


old, old_val = y < 5, y_val < 5
first = nn.Sequential(body, nn.Linear(128, 5))
fit(first, x[old], y[old], x_val[old_val], y_val[old_val], lr=2e-3, epochs=5, name="pre-training")

few = torch.where(y >= 5)[0][:300]
second = nn.Sequential(body, nn.Linear(128, 5))
fit(
    second,
    x[few],
    y[few] - 5,
    x_val[~old_val],
    y_val[~old_val] - 5,
    lr=5e-4 if healthy else 2e-1,
    epochs=15,
    name="fine-tuning",
)
