"""An embedding of twelve kinds of sensor curves is learned with pytorch-metric-learning, by a
trunk two units wide.

The widths of the hidden layers were left at 2 from a first try, too few to tell the kinds apart;
64 would do. The loss stops at a high value on training data as on validation data. The place is
trunk's layers.
"""

import numpy as np
import torch
from data import arguments
from pytorch_metric_learning import distances, losses, samplers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("0*", "2*", "4*", "trunk*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def curves(n, seed, length=24, kinds=12):
    shape = np.random.default_rng(77)
    t = np.linspace(0, 1, length)
    freq, phase = shape.uniform(0.5, 3.5, (kinds, 3)), shape.uniform(0, 6.3, (kinds, 3))
    base = np.sin(2 * np.pi * freq[..., None] * t + phase[..., None]).sum(1)
    r = np.random.default_rng(seed)
    y = r.integers(0, kinds, n)
    x = (
        base[y] * r.uniform(0.6, 1.4, (n, 1))
        + r.normal(0, 0.4, (n, 1))
        + 0.6 * r.normal(size=(n, length))
    )
    return torch.tensor(x, dtype=torch.float32) / 1.4, torch.tensor(y)


x, y = curves(1800, 10 * seed)
x_val, y_val = curves(600, 10 * seed + 1)
width = 64 if healthy else 2
trunk = nn.Sequential(
    nn.Linear(24, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 16)
)
sampler = samplers.MPerClassSampler(y, m=6, batch_size=72, length_before_new_iter=len(y))
loader = DataLoader(TensorDataset(x, y), batch_size=72, sampler=sampler)
loss_func = losses.SupConLoss(temperature=0.2)
optimizer = torch.optim.Adam(trunk.parameters(), lr=2e-3)
calculator = AccuracyCalculator(
    include=("precision_at_1",),
    knn_func=CustomKNN(distances.CosineSimilarity()),
    device=torch.device("cpu"),
)


def precision_at_1(query, labels, same=False):
    with torch.no_grad():
        return calculator.get_accuracy(trunk(query), labels, trunk(x), y, same)["precision_at_1"]


for epoch in range(16):
    trunk.train()
    total = 0.0
    for curve, label in loader:
        optimizer.zero_grad()
        loss = loss_func(trunk(curve), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    trunk.eval()
    known, new = precision_at_1(x, y, True), precision_at_1(x_val, y_val)
    print(
        f"epoch {epoch}: loss {total / len(loader):.3f}, precision at 1: training {known:.3f}, "
        f"validation {new:.3f}"
    )
print(f"validation precision at 1 {new:.3f}")
