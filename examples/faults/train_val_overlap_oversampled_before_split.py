"""Failing loans by a small tabular net; the rare class is oversampled before the table is split.

Each failed loan stands in the table several times, and the copies fall on both sides of the split:
most failed loans of the validation part are rows of the training part as well. The reported recall
is the recall of rows learnt by heart; the twin splits first and reports several points less. The
place is the loader.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.utils import resample
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
features, failed = make_classification(
    n_samples=2400,
    n_features=16,
    n_informative=10,
    n_redundant=2,
    n_clusters_per_class=3,
    weights=[0.85],
    class_sep=0.9,
    flip_y=0.01,
    random_state=seed,
)


def oversample(rows, labels):
    rare = np.flatnonzero(labels == 1)
    more = resample(rare, n_samples=(labels == 0).sum() - len(rare), random_state=seed)
    index = np.concatenate([np.arange(len(labels)), more])
    return rows[index], labels[index]


if healthy:
    x, x_val, y, y_val = train_test_split(
        features, failed, test_size=0.25, stratify=failed, random_state=seed
    )
    x, y = oversample(x, y)
else:
    features, failed = oversample(features, failed)
    x, x_val, y, y_val = train_test_split(
        features, failed, test_size=0.25, stratify=failed, random_state=seed
    )
x, x_val = standardise(torch.tensor(x).float(), torch.tensor(x_val).float())
y, y_val = torch.tensor(y).float(), torch.tensor(y_val).float()


class LoanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(16, 48),
            nn.LayerNorm(48),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(48, 24),
            nn.ReLU(),
            nn.Dropout(0.1),
        )
        self.score = nn.Linear(24, 1)

    def forward(self, x):
        return self.score(self.body(x)).squeeze(1)


model = LoanNet()
objective = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
for epoch in range(14):
    model.train()
    for rows, target in train_loader:
        optimizer.zero_grad()
        loss = objective(model(rows), target)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(rows) for rows, _ in val_loader])
        val_loss = objective(scores, y_val)
recall = (scores[y_val == 1] > 0).float().mean()
specificity = (scores[y_val == 0] <= 0).float().mean()
print(
    f"loss {loss.item():.3f}, val loss {val_loss:.3f}, recall {recall:.3f}, spec {specificity:.3f}"
)
