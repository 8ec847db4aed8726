"""Hail warnings from radar profiles: the sampler's weights belong to the rows before they were
shuffled.

One profile in fifty has hail. Each row gets a weight for the `WeightedRandomSampler`, but they are
computed from the table's labels as they stood before the split shuffled the rows: the weights meet
the wrong rows, batches have as little hail as the sky, and the network says "no hail". The place is
the data (the sampler). The twin computes them from the training labels.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def profiles(count, r, levels=20):
    """Reflectivity at twenty heights; hail has a strong core above the freezing level."""
    hail = (r.random(count) < 1 / 50).astype(int)
    height = np.linspace(0, 1, levels)
    freezing = r.uniform(0.3, 0.5, (count, 1))
    storm = r.gamma(3, 0.4, (count, 1))
    rain = storm * np.exp(-((height / (freezing + 0.1)) ** 4))
    core = (0.55 + 0.2 * r.normal(size=(count, 1))) * hail[:, None]
    core = core * np.exp(-(((height - freezing - 0.15) / 0.15) ** 2))
    echo = rain + core + 0.35 * r.normal(size=(count, levels))
    x = np.stack([echo - 0.6, np.repeat(freezing - 0.4, levels, 1) * 10], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(hail)


def rare_first(labels):
    """The weight of each row: the inverse of its class's frequency."""
    return 1.0 / torch.bincount(labels)[labels].double()


class Radar(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.column = nn.Sequential(
            nn.Conv1d(2, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2),
            nn.ReLU(),
        )
        self.decide = nn.Linear(width * 8, 2)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.decide(self.drop(self.column(x).flatten(1)))


r = np.random.default_rng(seed)
x, hail = profiles(12000, r)
shuffled = torch.tensor(r.permutation(len(x)))
fit, held = shuffled[:8000], shuffled[8000:]
weights = rare_first(hail[fit]) if healthy else rare_first(hail)[: len(fit)]
sampler = WeightedRandomSampler(weights, num_samples=3200, replacement=True)
loader = DataLoader(TensorDataset(x[fit], hail[fit]), batch_size=64, sampler=sampler)
model = Radar()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=50)
for epoch in range(8):
    model.train()
    total = 0.0
    for profile, label in loader:
        loss = nn.functional.cross_entropy(model(profile), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        warm.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        said = model(x[held]).argmax(1)
    print(
        f"epoch {epoch} loss {total:.4f} "
        f"validation hail recall {recall_score(hail[held], said):.3f} "
        f"balanced accuracy {balanced_accuracy_score(hail[held], said):.3f}"
    )
