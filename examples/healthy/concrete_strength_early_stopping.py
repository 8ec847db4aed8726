"""Strength of concrete from its recipe, with early stopping and the best weights put back.

The rate is halved on a plateau, the training ends after ten epochs without a better validation
loss, and the test set is looked at once, with the best checkpoint.
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "it ends before its epochs are up, and the last epochs are no better than the one kept"

_, seed = arguments(__doc__)


def recipes(n):
    r = np.random.default_rng(seed)
    cement, slag, ash = r.uniform(120, 520, n), r.exponential(60, n), r.exponential(45, n)
    water, sand, age = (
        r.normal(182, 20, n),
        r.normal(775, 75, n),
        r.choice([3, 7, 14, 28, 56, 90], n),
    )
    binder = cement + 0.7 * slag + 0.35 * ash
    strength = (
        23 * (binder / water) ** 0.95 * np.log1p(age) / np.log(29)
        - 0.01 * (sand - 775)
        + r.normal(0, 3, n)
    )
    return np.stack([cement, slag, ash, water, sand, np.log(age)], 1), strength


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited, self.weights = patience, float("inf"), 0, None

    def update(self, loss, model):
        if loss < self.best - 1e-4:
            self.best, self.waited = loss, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


x, y = recipes(2400)
rows = np.random.permutation(len(x))
parts = np.split(rows, [1600, 2000])
mean, std = x[parts[0]].mean(0), x[parts[0]].std(0)
y_mean, y_std = y[parts[0]].mean(), y[parts[0]].std()
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor((y - y_mean) / y_std, dtype=torch.float32)
train, val, test = (TensorDataset(x[p], y[p]) for p in parts)
loader = DataLoader(train, batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(6, 64),
    nn.ReLU(),
    nn.Dropout(0.05),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
    nn.Flatten(0),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4)
stopping = EarlyStopping(patience=10)


@torch.no_grad()
def loss_on(dataset):
    model.eval()
    return criterion(model(dataset.tensors[0]), dataset.tensors[1]).item()


for epoch in range(60):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    val_loss = loss_on(val)
    scheduler.step(val_loss)
    print(
        f"epoch {epoch:2d} train {total:.4f} val {val_loss:.4f} "
        f"rate {scheduler.get_last_lr()[0]:.1e}"
    )
    if stopping.update(val_loss, model):
        break
model.load_state_dict(stopping.weights)
print(
    f"best val {stopping.best:.4f}, test {loss_on(test):.4f}, "
    f"{y_std * loss_on(test) ** 0.5:.1f} MPa off"
)
