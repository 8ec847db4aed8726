"""Sales of small shops from 30 noisy columns: a wide network is trained until the loss is zero.

"Loss must go down, so train longer": the script has an EarlyStopping helper, but it is handed the
TRAINING loss, so it never stops, and the wide MLP learns the noise of its 400 rows by heart. The
place is the loop. The twin gives the helper the validation loss, and the best weights return.
"""

import copy

import numpy as np
import torch
from data import arguments
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
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.weights = patience, float("inf"), 0, None

    def step(self, value, model):
        if value < self.best:
            self.best, self.bad, self.weights = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


rng = np.random.default_rng(seed)
x = rng.normal(size=(900, 30)).astype(np.float32)
weights = np.concatenate([rng.normal(0, 1, 8), np.zeros(22)])
y = np.tanh(x @ weights * 0.4) * 2 + x[:, 0] + rng.normal(0, 1.5, 900)
y = (y - y[:400].mean()) / y[:400].std()
x, y = torch.tensor(x), torch.tensor(y, dtype=torch.float32)
train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=50, shuffle=True)
x_val, y_val = x[400:], y[400:]

model = nn.Sequential(
    nn.Linear(30, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
stopper = EarlyStopping(patience=8)

for epoch in range(100):
    model.train()
    train_loss = 0.0
    for xb, yb in train:
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb) / 400
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
    if epoch % 8 == 0:
        print(f"epoch {epoch:3d}  train {train_loss:.4f}  val {val_loss:.3f}")
    if stopper.step(val_loss if healthy else train_loss, model):
        print("stopped at epoch", epoch)
        break

model.load_state_dict(stopper.weights)
with torch.no_grad():
    print(f"final val mse {nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item():.3f}")
