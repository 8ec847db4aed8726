"""Response to a drug from 40 genes and 800 patients; early stopping that watches the training
loss.

The callback came with `monitor="loss"`, which in the framework it was written for was the
validation's. Here "loss" is the training loss; it keeps falling, so nothing stops, and the "best"
weights are the most overfitted ones, far past the minimum of validation. The place is the loop.
The twin monitors "val_loss".
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
GENES, TRAIN, VAL = 40, 800, 600
x = torch.randn(TRAIN + VAL, GENES, generator=g)
weight = torch.zeros(GENES)
weight[:8] = torch.tensor([1.0, -0.9, 0.8, -0.7, 0.7, 0.6, -0.5, 0.5])
odds = 1.5 * (x @ weight)
y = (torch.rand(TRAIN + VAL, generator=g) < torch.sigmoid(odds)).float()
loader = DataLoader(TensorDataset(x[:TRAIN], y[:TRAIN]), batch_size=64, shuffle=True)
x_val, y_val = x[TRAIN:], y[TRAIN:]

model = nn.Sequential(nn.Linear(GENES, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
criterion = nn.BCEWithLogitsLoss()


class EarlyStopping:
    def __init__(self, monitor, patience):
        self.monitor, self.patience, self.best, self.waited, self.weights = (
            monitor,
            patience,
            float("inf"),
            0,
            None,
        )

    def stop(self, logs, model):
        value = logs[self.monitor]
        if value < self.best:
            self.best, self.waited, self.weights = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def validate():
    model.eval()
    with torch.no_grad():
        logits = model(x_val).squeeze(1)
    return criterion(logits, y_val).item(), ((logits > 0) == (y_val > 0)).float().mean().item()


stopping = EarlyStopping("val_loss" if healthy else "loss", patience=8)
for epoch in range(110):
    model.train()
    losses = []
    for genes, response in loader:
        optimizer.zero_grad()
        loss = criterion(model(genes).squeeze(1), response)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val_loss, accuracy = validate()
    if epoch % 10 == 9:
        print(
            f"epoch {epoch + 1} train {sum(losses) / len(losses):.4f} val {val_loss:.4f} "
            f"accuracy {accuracy:.3f}"
        )
    if stopping.stop({"loss": sum(losses) / len(losses), "val_loss": val_loss}, model):
        print(f"stopped after epoch {epoch + 1}")
        break
model.load_state_dict(stopping.weights)
print("final: val loss {:.4f} accuracy {:.3f}".format(*validate()))
