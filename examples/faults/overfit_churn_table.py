"""A wide MLP predicts which customers of a telephone company leave; it trains on long after the
best validation loss.

640 customers, 16 columns of which most say nothing, a network of 75,000 weights and 120 epochs
without early stopping: the training loss goes to zero while the validation loss rises to more
than twice its minimum. The place is the loop.
"""

import copy

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

EPOCHS = 120
PATIENCE = 4 if healthy else EPOCHS

r = np.random.default_rng(210 + seed)
n = 1440
months = r.gamma(2.0, 12.0, n)
bill = r.normal(60, 20, n)
calls = r.poisson(1.5, n)
contract = r.integers(0, 2, n)
others = r.normal(0, 1, (n, 12))
score = (
    0.8 * calls
    + 0.03 * (bill - 60)
    - 0.05 * (months - 24)
    - 1.5 * contract
    - 0.3
    + 0.5 * others[:, 0]
)
churn = r.random(n) < 1 / (1 + np.exp(-score))
table = np.column_stack([months, bill, calls, contract, others])
x, y = torch.tensor(table, dtype=torch.float32), torch.tensor(churn, dtype=torch.float32)
x, x_val = standardise(x[:640], x[640:])
y, y_val = y[:640], y[640:]

train_dataloader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
test_dataloader = DataLoader(TensorDataset(x_val, y_val), batch_size=400)

model = nn.Sequential(
    nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1), nn.Flatten(0)
)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)


def train_loop(dataloader):
    model.train()
    total = 0.0
    for X, target in dataloader:
        loss = loss_fn(model(X), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
    return total / len(dataloader)


def test_loop(dataloader):
    model.eval()
    loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, target in dataloader:
            logits = model(X)
            loss += loss_fn(logits, target).item() / len(dataloader)
            correct += ((logits > 0) == (target > 0.5)).sum().item()
    return loss, correct / len(dataloader.dataset)


best, since, state = float("inf"), 0, None
for epoch in range(EPOCHS):
    train_loss = train_loop(train_dataloader)
    val_loss, accuracy = test_loop(test_dataloader)
    if epoch % 10 == 0 or healthy:
        print(f"epoch {epoch:3d} train {train_loss:.4f} val {val_loss:.4f} acc {accuracy:.3f}")
    if val_loss < best:
        best, since, state = val_loss, 0, copy.deepcopy(model.state_dict())
    else:
        since += 1
    if since >= PATIENCE:
        model.load_state_dict(state)
        break
print("final validation loss {:.4f}, accuracy {:.3f}".format(*test_loop(test_dataloader)))
