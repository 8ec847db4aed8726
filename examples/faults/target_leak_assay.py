"""An MLP predicts the potency of compounds from descriptors; one column is the potency itself in
another unit.

The table that the screening lab handed over holds a column "kd_nM", which is computed from the
measured potency (and so isn't known for a new compound). Training and validation look splendid;
for new compounds the column is empty (filled with the mean) and the predictions are useless. The
place is the input columns.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, batches, standardise
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

r = np.random.default_rng(50 + seed)
n = 2400
weight = r.normal(380, 70, n)
logp = r.normal(2.6, 1.1, n)
psa = r.gamma(6, 13, n)
donors = r.poisson(1.6, n)
rings = r.poisson(2.8, n)
charge = r.normal(0, 0.4, n)
rotatable = r.poisson(4.5, n)
potency = (
    6.1
    + 0.45 * np.tanh(logp - 2)
    - 0.006 * (psa - 80)
    + 0.25 * rings
    - 0.3 * np.abs(charge) * donors
    - 0.08 * rotatable
    + 0.5 * np.sin(weight / 60)
    + r.normal(0, 0.45, n)
)
kd = (9.0 - potency) * 2.302585  # ln of the dissociation constant in nM
table = {
    "weight": weight,
    "logp": logp,
    "psa": psa,
    "donors": donors,
    "rings": rings,
    "charge": charge,
    "rotatable": rotatable,
    "kd_nM": kd,
}
columns = [c for c in table if not (healthy and c == "kd_nM")]
x = torch.tensor(np.stack([table[c] for c in columns], 1), dtype=torch.float32)
y = torch.tensor(potency, dtype=torch.float32).unsqueeze(1)
x_train, x_val, x_new = standardise(x[:1600], x[1600:2000], x[2000:])
y_train, y_val, y_new = standardise(y[:1600], y[1600:2000], y[2000:])
if "kd_nM" in columns:
    x_new[:, columns.index("kd_nM")] = 0.0  # not measured yet


class Potency(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 48), nn.SiLU(), nn.Linear(48, 24), nn.SiLU())
        self.head = nn.Linear(24, 1)

    def forward(self, descriptors):
        return self.head(self.body(descriptors))


def r2(model, inputs, target):
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(inputs), target).item()
    model.train()
    return 1 - error / target.var().item()


model = Potency(len(columns))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for step, (xb, yb) in enumerate(batches(x_train, y_train, size=64, steps=900, seed=seed)):
    loss = F.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 149:
        print(f"step {step + 1} loss {loss.item():.4f} val R2 {r2(model, x_val, y_val):.3f}")
print(f"new compounds R2 {r2(model, x_new, y_new):.3f}")
