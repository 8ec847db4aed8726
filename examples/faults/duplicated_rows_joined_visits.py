"""Patients are joined with their visits before training; whoever came 300 times is 300 equal rows.

The join was for one column that is the same in all visits. A few chronic patients make most of
the rows, and the net learns them by heart. The place is the loader. The loss falls all the same
(silent), lower than it should; new patients are judged worse. Exact: rows are equal.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# table of patients: id, eleven measurements, days in hospital
n_patients = 900
measures = rng.normal(size=(n_patients, 11))
days = (
    4
    + 1.5 * measures[:, 0]
    - 1.2 * measures[:, 1] * (measures[:, 2] > 0)
    + np.abs(measures[:, 3])
    + 0.8 * measures[:, 4]
    + rng.normal(0, 0.7, n_patients)
)
# table of visits: patient, insurance of the patient
insurance = rng.integers(0, 2, n_patients)
days = days + 0.6 * insurance
often = rng.choice(n_patients, 18, replace=False)
count = np.ones(n_patients, int)
count[often] = rng.integers(400, 800, 18)
visits = [(p, insurance[p]) for p in range(n_patients) for _ in range(count[p])]

if healthy:  # one row for each patient
    visits = sorted(set(visits))
joined = np.array([[*measures[p], insured, days[p], p] for p, insured in visits])

# nobody is in both parts
test_patients = set(rng.choice(n_patients, 300, replace=False).tolist())
in_test = np.array([int(row[-1]) in test_patients for row in joined])
train = joined[~in_test]
_, first = np.unique(joined[:, -1], return_index=True)
test = joined[[i for i in first if in_test[i]]]
mean, std = train[:, :-1].mean(0), train[:, :-1].std(0)


def tensors(rows):
    scaled = torch.tensor((rows[:, :-1] - mean) / std, dtype=torch.float32)
    return scaled[:, :-1], scaled[:, -1:]


train_loader = DataLoader(TensorDataset(*tensors(train)), batch_size=32, shuffle=True)
x_test, y_test = tensors(test)

net = nn.Sequential(
    nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1)
)
optim = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
step, steps = 0, 450
while step < steps:
    net.train()
    for xb, yb in train_loader:
        loss = nn.functional.mse_loss(net(xb), yb)
        optim.zero_grad()
        loss.backward()
        optim.step()
        step += 1
        if step % 150 == 0 or step == steps:
            net.eval()
            with torch.no_grad():
                error = (net(x_test) - y_test).abs().mean().item() * std[-1]
                r2 = 1 - ((net(x_test) - y_test) ** 2).mean() / y_test.var()
            net.train()
            print(f"step {step}: loss {loss.item():.4f}, test off by {error:.2f} days, R2 {r2:.3f}")
        if step == steps:
            break
