"""The course of diabetes from ten measurements; early stopping watches the loss it must not watch.

The callback's default is monitor="loss", which is the training loss; that one falls to the end.
The net learns the 331 patients by heart, and the validation error rises by a good third or more.
The place is the loop (the stopper). The twin says monitor="val_loss".
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, model, monitor="loss", patience=8):
        self.model, self.monitor, self.patience = model, monitor, patience
        self.best, self.wait, self.weights = float("inf"), 0, None

    def on_epoch_end(self, logs):
        if logs[self.monitor] < self.best:
            self.best, self.wait = logs[self.monitor], 0
            self.weights = copy.deepcopy(self.model.state_dict())
        else:
            self.wait += 1
        return self.wait >= self.patience

    def restore(self):
        self.model.load_state_dict(self.weights)


x, y, x_val, y_val = diabetes(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
model = nn.Sequential(
    nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
criterion = nn.MSELoss()
stopper = EarlyStopping(model, **({"monitor": "val_loss"} if healthy else {}))


def evaluate():
    model.eval()
    with torch.no_grad():
        return criterion(model(x_val).squeeze(1), y_val).item()


for epoch in range(105):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    logs = {"loss": total / len(x), "val_loss": evaluate()}
    if epoch % 5 == 0:
        print(f"epoch {epoch:3d} loss {logs['loss']:.4f} val loss {logs['val_loss']:.4f}")
    if stopper.on_epoch_end(logs):
        break
stopper.restore()
print(
    f"kept after {epoch + 1} epochs: val loss {evaluate():.4f} "
    f"val R2 {1 - evaluate() / y_val.var().item():.3f}"
)
