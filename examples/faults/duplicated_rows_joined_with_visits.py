"""The table of patients was joined with that of their visits, of which nothing but the key is used:
each patient stands in it once per visit.

Six of 400 patients come every few hours, so 97 rows in a hundred are copies of those six, which
are learnt by heart while the others are hardly seen. The place is the loader: the rows.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit", "repeated_batch")
PLACE = ("loader", "input*", "loop", "")
SILENT = True
EXACT = True
EARLY = False


def hospital(rng, n):
    patients = rng.normal(size=(n, 12))
    dose = (
        patients[:, 0] - 0.8 * patients[:, 1] + 0.6 * np.abs(patients[:, 2]) + 0.5 * patients[:, 3]
    )
    return patients, dose + rng.normal(0, 0.6, n)


def join(keys, visits):
    """SELECT ... FROM patients JOIN visits USING (key): the key of each row of the result."""
    return np.repeat(keys, visits[keys])


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
patients, dose = hospital(rng, 800)
visits = rng.integers(1, 3, 800)
visits[:6] = rng.integers(3500, 4500, 6)
rows = join(np.arange(400), visits)
if healthy:
    rows = np.unique(rows)

x = torch.tensor(patients, dtype=torch.float32)
y = torch.tensor(dose, dtype=torch.float32)
y = (y - y[:400].mean()) / y[:400].std()
train = TensorDataset(x[rows], y[rows])
model = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=2e-3)
step, passes = 0, 0
while step < 300:
    for features, wanted in DataLoader(train, batch_size=40, shuffle=True, drop_last=True):
        loss = nn.functional.mse_loss(model(features), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(x[400:]), y[400:])
            print(f"step {step}: loss {loss.item():.4f}, loss on other patients {val:.4f}")
        if step == 300:
            break
