"""A network foresees deaths in intensive care from columns that say where the patient went after.

That ward is known only when the stay is over, and "none" then means that the patient died. Held-out
loss and accuracy are splendid; at admission, where everyone still has "none", the network foresees
the death of all. The place is the input: the columns of "ward_after".
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "loader", "labels*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def stays(n, rng):
    table = pd.DataFrame(
        {
            "age": rng.normal(62, 14, n).clip(18, 98),
            "lactate": rng.lognormal(0.6, 0.5, n),
            "pulse": rng.normal(95, 18, n),
            "pressure": rng.normal(75, 13, n),
            "creatinine": rng.lognormal(0.2, 0.5, n),
            "oxygen": rng.normal(94, 4, n).clip(60, 100),
            "surgery": rng.integers(0, 2, n).astype(float),
        }
    )
    risk = 0.07 * (table.age - 62) + 1.3 * (table.lactate - 2) - 0.06 * (table.pressure - 75)
    risk += 0.9 * (table.creatinine - 1.4) - 1.5 * table.surgery - 0.15 * (table.oxygen - 94)
    risk += 0.0015 * (table.pulse - 90) ** 2
    died = rng.random(n) < 1 / (1 + np.exp(-1.3 * (risk - risk.median() - 0.7)))
    ward = rng.choice(["medicine", "surgery", "rehabilitation"], n, p=[0.5, 0.3, 0.2])
    table["ward_after"] = np.where(died, "none", ward)
    table["died"] = died.astype(float)
    return table


table = stays(2400, np.random.default_rng(seed))
outcome = torch.tensor(table.pop("died").to_numpy(), dtype=torch.float32)
if healthy:
    table = table.drop(columns="ward_after")
columns = pd.get_dummies(table, dtype=float)
features = torch.tensor(columns.to_numpy(), dtype=torch.float32)
mean, std = features[:1600].mean(0), features[:1600].std(0)
at_admission = features.clone()
for i, name in enumerate(columns):
    if name.startswith("ward_after"):
        at_admission[:, i] = float(name == "ward_after_none")
features, at_admission = (features - mean) / std, (at_admission - mean) / std

model = nn.Sequential(
    nn.Linear(features.shape[1], 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)


@torch.no_grad()
def evaluate(rows):
    model.eval()
    logits = model(rows).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(logits, outcome[1600:]).item()
    return loss, ((logits > 0) == (outcome[1600:] > 0.5)).float().mean().item()


for epoch in range(20):
    model.train()
    running = 0.0
    for rows in torch.randperm(1600).split(64):
        batch = {"features": features[rows], "died": outcome[rows]}
        loss = F.binary_cross_entropy_with_logits(model(batch["features"])[:, 0], batch["died"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(rows) / 1600
    if epoch % 4 == 3:
        print(f"{epoch + 1} train {running:.3f} val %.3f accuracy %.3f" % evaluate(features[1600:]))
print("at admission: loss {:.3f} accuracy {:.3f}".format(*evaluate(at_admission[1600:])))
