"""Trains an MLP with strong dropout and batch norm on tabular data and validates it without
model.eval().

validate() is under no_grad, but dropout goes on dropping and batch norm uses the statistics of the
validation batches (and takes them into its running ones). The reported validation loss is much
worse than the model's. The twin calls model.eval() in validate(). The place is `1`, `3`, `5`, `7`
or the loop.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("1", "3", "5", "7", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

table, label = make_classification(
    5000,
    16,
    n_informative=10,
    n_redundant=3,
    n_classes=5,
    n_clusters_per_class=1,
    class_sep=1.0,
    flip_y=0.0,
    random_state=seed,
)
x = torch.tensor(table, dtype=torch.float32)
y = torch.tensor(label)
x, x_val = standardise(x[:4000], x[4000:])
y, y_val = y[:4000], y[4000:]
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=8)

model = nn.Sequential(
    nn.Linear(16, 96),
    nn.BatchNorm1d(96),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(96, 96),
    nn.BatchNorm1d(96),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(96, 5),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def train():
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(train_loader)


@torch.no_grad()
def validate():
    if healthy:
        model.eval()
    total, correct = 0.0, 0
    for xb, yb in val_loader:
        out = model(xb)
        total += criterion(out, yb).item() * len(xb)
        correct += (out.argmax(1) == yb).sum().item()
    return total / len(x_val), correct / len(x_val)


for epoch in range(1, 13):
    train_loss = train()
    val_loss, val_acc = validate()
    print(f"epoch {epoch:2d}: train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.3f}")
