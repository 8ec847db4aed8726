"""Boosts small networks: each stage is a fresh network fitted to what the frozen ones leave."""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "every stage has a new network and optimizer, its targets shrink towards noise and its own "
    "loss hardly falls at the end, while all earlier networks are frozen: that is boosting"
)
SHRINK = 0.3
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def weak_learner(columns: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 8), nn.Tanh(), nn.Linear(8, 1))


def fit(model, x, residual, epochs: int = 6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loader = DataLoader(TensorDataset(x, residual), batch_size=100, shuffle=True)
    for _ in range(epochs):
        for rows, target in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(rows).squeeze(1), target)
            loss.backward()
            optimizer.step()
    return model.eval().requires_grad_(False)


x, y, x_val, y_val = houses(seed)
prediction, prediction_val = torch.zeros_like(y), torch.zeros_like(y_val)
best, best_stages, ensemble = float("inf"), 0, []
for stage in range(25):
    learner = fit(weak_learner(x.shape[1]), x, y - prediction)
    ensemble.append(learner)
    with torch.no_grad():
        prediction += SHRINK * learner(x).squeeze(1)
        prediction_val += SHRINK * learner(x_val).squeeze(1)
    val = F.mse_loss(prediction_val, y_val).item()
    if val < best:
        best, best_stages = val, stage + 1
    if stage % 5 == 4:
        print(f"stage {stage + 1}: train {F.mse_loss(prediction, y):.4f}, validation {val:.4f}")

line = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1)], 1), y.unsqueeze(1)).solution
linear = torch.cat([x_val, torch.ones(len(x_val), 1)], 1) @ line
r2 = 1 - best / y_val.var().item()
r2_line = 1 - F.mse_loss(linear.squeeze(1), y_val).item() / y_val.var().item()
print(f"kept {best_stages} of {len(ensemble)} stages: R2 {r2:.3f}, straight line {r2_line:.3f}")
