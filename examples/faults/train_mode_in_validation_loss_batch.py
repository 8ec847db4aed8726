"""The helper loss_batch() calls model.train() at its top and serves validation too, so dropout and
batch norm stay in training mode there.

fit() calls model.eval() before the validation loop, but the helper undoes it at the first batch.
Validation is judged with half of the units off, and its rows move the running statistics of batch
norm. The place is the validation loop.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model", "net.*", "net")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


class BeetleNet(nn.Module):
    """Five species of beetles by 24 measurements of their wing cases."""

    def __init__(self, features, species):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.4),
            nn.Linear(96, 48), nn.ReLU(), nn.Dropout(0.4), nn.Linear(48, species),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


def loss_batch(model, loss_func, xb, yb, opt=None):
    if opt is not None or not healthy:
        model.train()
    out = model(xb)
    loss = loss_func(out, yb)
    if opt is not None:
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item(), (out.argmax(1) == yb).sum().item(), len(yb)


def summary(results):
    losses, hits, sizes = zip(*results, strict=True)
    return np.average(losses, weights=sizes), sum(hits) / sum(sizes)


def fit(epochs, model, loss_func, opt, train_dl, valid_dl):
    for epoch in range(epochs):
        loss, acc = summary([loss_batch(model, loss_func, xb, yb, opt) for xb, yb in train_dl])
        model.eval()
        with torch.no_grad():
            val = [loss_batch(model, loss_func, xb, yb) for xb, yb in valid_dl]
        val_loss, val_acc = summary(val)
        print(f"{epoch:2d} train {loss:.4f} {acc:.3f}  valid {val_loss:.4f} {val_acc:.3f}")


def get_data():
    x, y = make_classification(
        n_samples=2400, n_features=24, n_informative=12, n_redundant=4, n_classes=5,
        n_clusters_per_class=1, class_sep=1.6, flip_y=0.01, random_state=seed,
    )  # fmt: skip
    x_train, x_val, y_train, y_val = train_test_split(
        x, y, test_size=0.25, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(x_train)
    for part, labels in ((x_train, y_train), (x_val, y_val)):
        features = torch.tensor(scaler.transform(part), dtype=torch.float32)
        yield TensorDataset(features, torch.tensor(labels))


train_ds, valid_ds = get_data()
train_dl = DataLoader(train_ds, batch_size=60, shuffle=True)
valid_dl = DataLoader(valid_ds, batch_size=60)
model = BeetleNet(24, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
fit(12, model, nn.CrossEntropyLoss(), optimizer, train_dl, valid_dl)
