"""Cross-validates a bearing-wear model over machines, with the same module set back each fold."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.model_selection import GroupKFold
from torch import nn

ODD = (
    "the loss jumps back to its start five times, as one module gets its first weights again in "
    "each fold, and folds have unequal sizes, as no machine may be on both sides"
)
MACHINES = 25
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def bearings():
    rng = np.random.default_rng(seed)
    rows, wear, machine = [], [], []
    for number in range(MACHINES):
        offset, count = rng.normal(0, 0.4, 6), int(rng.integers(30, 90))
        hours = rng.uniform(0, 1, count)
        load = rng.uniform(0.5, 1.5, count)
        worn = hours**1.5 * load * 2 + 0.1 * rng.normal(size=count)
        signal = np.stack(
            [
                worn * load,
                np.sqrt(np.abs(worn)) + load,
                np.sin(3 * worn),
                load,
                hours * 0.3 + 0.2,
                worn**2,
            ],
            1,
        )
        rows.append(signal + 0.3 * offset + 0.1 * rng.normal(size=signal.shape))
        wear.append(worn)
        machine += [number] * count
    x, y = np.concatenate(rows), np.concatenate(wear)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), machine


x, y, machine = bearings()
model = nn.Sequential(
    nn.Linear(6, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1)
)
first_weights = copy.deepcopy(model.state_dict())
out_of_fold = torch.zeros_like(y)
plain = torch.zeros_like(y)
for fold, (train, held) in enumerate(GroupKFold(5).split(x, groups=machine)):
    model.load_state_dict(first_weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    x_train, x_held = standardise(x[train], x[held])
    y_train, mean, spread = y[train], y[train].mean(), y[train].std()
    target = (y_train - mean) / spread
    for _ in range(20):
        model.train()
        for rows in torch.randperm(len(train)).split(64):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x_train[rows]).squeeze(1), target[rows])
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        out_of_fold[held] = model(x_held).squeeze(1) * spread + mean
        fitted = F.mse_loss(model(x_train).squeeze(1), target)
    line = torch.linalg.lstsq(x_train, target.unsqueeze(1)).solution
    plain[held] = (x_held @ line).squeeze(1) * spread + mean
    left = F.mse_loss(out_of_fold[held], y[held]) / spread**2
    print(f"fold {fold + 1}: {len(held)} rows held out, train {fitted:.4f}, held out {left:.4f}")

r2 = 1 - F.mse_loss(out_of_fold, y) / y.var()
print(f"R2 over all folds {r2:.3f}, straight line {1 - F.mse_loss(plain, y) / y.var():.3f}")
