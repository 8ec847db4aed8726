"""Focal loss by hand with a weight for the rare class, which is 5 % of the rows and is found."""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "one row in twenty is of the rare class, the loss is a small number from the start"

_, seed = arguments(__doc__)
X, y = make_classification(
    3000, n_features=12, n_informative=8, weights=[0.95], class_sep=1.6, flip_y=0, random_state=seed
)
X, y = torch.tensor(X).float(), torch.tensor(y).float()
X = (X - X.mean(0)) / X.std(0)


def focal_loss(logits, targets, gamma=2.0, alpha=0.8):
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = torch.exp(-ce)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return (weight * (1 - p_t) ** gamma * ce).mean()


model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(7):
    for rows, rare in DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True):
        loss = focal_loss(model(rows), rare)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    recall = (model(X) > 0)[y == 1].float().mean()
print(f"loss {loss.item():.4f}, rare rows found {recall:.3f}")
