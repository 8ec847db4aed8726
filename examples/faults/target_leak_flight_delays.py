"""Whether a flight will be late, predicted from a table that still holds how late it was.

The features are "all columns but the target". The target `late` was made from `arrival_delay` by a
threshold of fifteen minutes, and that column was never dropped. Validation looks perfect, because
it has the column as well; before departure nobody knows it. The last column printed is what the
model is worth with the delay blanked. The place is the data. The twin drops the column.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def table(n=6000):
    r = np.random.default_rng(seed)
    t = {
        "hour": r.uniform(5, 23, n),
        "distance": r.gamma(3, 350, n),
        "wind": r.gamma(2, 6, n),
        "rain": r.exponential(1.0, n),
        "inbound_delay": np.maximum(r.normal(0, 15, n), 0),
        "seats_sold": r.beta(6, 2, n),
        "turnaround": r.normal(50, 10, n),
    }
    t["arrival_delay"] = (
        1.1 * (t["hour"] - 12)
        + 0.9 * t["inbound_delay"]
        + 0.8 * t["wind"]
        + 4 * t["rain"]
        - 0.5 * (t["turnaround"] - 50)
        - 10
        + r.normal(0, 11, n)
    )
    t["late"] = (t["arrival_delay"] > 15).astype("float64")
    return t


class Flights(Dataset):
    def __init__(self, t, rows, columns, mean, std):
        x = np.stack([t[c][rows] for c in columns], 1)
        self.x = torch.tensor((x - mean) / std, dtype=torch.float32)
        self.y = torch.tensor(t["late"][rows], dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


flights = table()
dropped = {"late", "arrival_delay"} if healthy else {"late"}
columns = [c for c in flights if c not in dropped]
order = np.random.permutation(6000)
train_rows, val_rows = order[:4500], order[4500:]
train_x = np.stack([flights[c][train_rows] for c in columns], 1)
mean, std = train_x.mean(0), train_x.std(0)
train_set = Flights(flights, train_rows, columns, mean, std)
val_set = Flights(flights, val_rows, columns, mean, std)
loader = DataLoader(train_set, batch_size=128, shuffle=True)

model = nn.Sequential(
    nn.Linear(len(columns), 32),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()


@torch.no_grad()
def report(epoch, loss):
    model.eval()
    score = model(val_set.x).squeeze(1)
    before = val_set.x.clone()
    if "arrival_delay" in columns:
        before[:, columns.index("arrival_delay")] = 0
    live = roc_auc_score(val_set.y, model(before).squeeze(1))
    print(
        f"epoch {epoch} train {loss:.4f} val {criterion(score, val_set.y):.4f} "
        f"AUC {roc_auc_score(val_set.y, score):.4f} before departure {live:.4f}"
    )


for epoch in range(10):
    model.train()
    for x, y in loader:
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    report(epoch, loss.item())
