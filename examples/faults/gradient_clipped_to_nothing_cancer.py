"""Tumour classification by SGD with the gradient norm clipped to 0.0005.

The gradients are a thousand times that, so every step is the same tiny one and the loss creeps.
The place is the optimizer.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MAX_NORM = 1.0 if healthy else 5e-4
features, target, val_features, val_target = cancer(seed)
target, val_target = target.float(), val_target.float()

model = nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 1))
bce = nn.BCEWithLogitsLoss()
sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-2)
for a, b in batches(features, target, size=32, steps=91, seed=seed):
    sgd.zero_grad()
    loss = bce(model(a).squeeze(-1), b)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_NORM)
    sgd.step()
with torch.no_grad():
    logits = model(val_features).squeeze(-1)
    acc = ((logits > 0) == (val_target > 0.5)).float().mean().item()
    val = bce(logits, val_target).item()
print(f"train {loss.item():.3f} validation {val:.3f} accuracy {acc:.3f}")
