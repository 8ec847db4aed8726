"""A tabular classifier's batch norm layers have momentum=0.99, as in Keras, with batches of sixteen
rows.

PyTorch's momentum is the weight of the new batch (Keras: of the old average), so the running
statistics are those of the last batch, and evaluation is far worse than training and jumps around.
The twin has the default 0.1. The place is `1`, `4` or `7`.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("1", "4", "7")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
features, labels = make_classification(
    n_samples=6000,
    n_features=12,
    n_informative=12,
    n_redundant=0,
    n_classes=5,
    n_clusters_per_class=2,
    class_sep=1.6,
    random_state=10 + seed,
)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(labels)
x, x_val = standardise(x[:4800], x[4800:])
y, y_val = y[:4800], y[4800:]

momentum = 0.1 if healthy else 0.99
model = nn.Sequential(
    nn.Linear(12, 64),
    nn.BatchNorm1d(64, momentum=momentum),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.BatchNorm1d(64, momentum=momentum),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.BatchNorm1d(32, momentum=momentum),
    nn.ReLU(),
    nn.Linear(32, 5),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)
epochs = 5
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train_loader))

for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for step, (xb, yb) in enumerate(train_loader, 1):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
        if step % 150 == 0:
            model.eval()
            with torch.no_grad():
                out = model(x_val)
                acc = (out.argmax(1) == y_val).float().mean()
            print(
                f"epoch {epoch} step {step}: loss {total / step:.3f}, "
                f"val {criterion(out, y_val):.3f}, acc {acc:.3f}"
            )
            model.train()
