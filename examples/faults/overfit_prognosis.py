"""A large MLP learns the outcome of 180 patients from many weak gene markers until it knows them
by heart.

Training goes on for a fixed number of epochs, long after the validation loss has passed its
minimum; nobody looks at it. The twin stops when the validation loss hasn't improved for a while.
The place is the loop.
"""

import copy

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
PATIENCE = 4 if healthy else None

r = np.random.default_rng(110 + seed)
GENES, PATIENTS = 40, 900
pathways = r.normal(0, 1, (PATIENTS, 6))
loading = r.normal(0, 1, (6, GENES)) * (r.random((6, GENES)) < 0.35)
genes = pathways @ loading + r.normal(0, 1.0, (PATIENTS, GENES))
risk = 1.3 * pathways[:, 0] - 1.0 * pathways[:, 1] + 0.8 * pathways[:, 2] * (pathways[:, 3] > 0)
outcome = (r.random(PATIENTS) < 1 / (1 + np.exp(-1.5 * risk))).astype("float32")
x = torch.tensor(genes, dtype=torch.float32)
y = torch.tensor(outcome)
x, x_val = standardise(x[:300], x[300:])
y, y_val = y[:300], y[300:]


class Prognosis(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.hidden1 = nn.Linear(GENES, width)
        self.hidden2 = nn.Linear(width, width)
        self.risk = nn.Linear(width, 1)

    def forward(self, genes):
        h = F.relu(self.hidden1(genes))
        return self.risk(F.relu(self.hidden2(h))).squeeze(-1)


model = Prognosis()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.01)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
best, best_state, since = float("inf"), None, 0
for epoch in range(60):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = F.binary_cross_entropy_with_logits(out, y_val).item()
        accuracy = ((out > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch:2d} train {total / len(x):.3f} val {val:.3f} accuracy {accuracy:.3f}")
    if val < best:
        best, best_state, since = val, copy.deepcopy(model.state_dict()), 0
    else:
        since += 1
    if PATIENCE is not None and since == PATIENCE:
        model.load_state_dict(best_state)
        print(f"stopped, val {best:.3f}")
        break
