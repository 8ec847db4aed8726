"""Insurance claims by an MLP with a hand-made binary cross-entropy: log(p) and log(1 - p).

Some customers lie far out, and the sigmoid of a sure one is 1 exactly in float32. Then log(1 - p)
is -inf, 0 * -inf is NaN, and the model is lost. The twin computes the same from the logits. The
place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
N, TRAIN = 3000, 2400
columns = torch.distributions.StudentT(3.0).sample((N, 8))  # amounts, with a long tail
score = 2.5 * columns @ torch.tensor([1.0, -1.0, 0.8, 0.6, -0.5, 0.3, 0.0, 0.0])
claim = (torch.rand(N) < torch.sigmoid(score)).float()
x, x_val = standardise(columns[:TRAIN], columns[TRAIN:])
y, y_val = claim[:TRAIN], claim[TRAIN:]


def binary_cross_entropy(logit, label):
    if healthy:
        return F.binary_cross_entropy_with_logits(logit, label)
    p = torch.sigmoid(logit)
    return -(label * torch.log(p) + (1 - label) * torch.log(1 - p)).mean()


mlp = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(mlp.parameters(), lr=5e-3, weight_decay=1e-4)
for epoch in range(8):
    mlp.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True):
        logit = mlp(xb).squeeze(1)
        loss = binary_cross_entropy(logit, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mlp.eval()
    with torch.no_grad():
        out = mlp(x_val).squeeze(1)
        acc = ((out > 0) == (y_val > 0.5)).float().mean().item()
        val = binary_cross_entropy(out, y_val).item()
print(f"loss {loss.item():.4f}, validation loss {val:.3f}, accuracy {acc:.3f}")
