"""Tabular regression of concrete strength with early stopping; the "best" weights are a shallow
copy and go on training.

`{k: v for k, v in state_dict().items()}` makes a new dict of the same tensors: after the patience
has run out the restored weights are the last, overfitted ones. The place is the loop
(EarlyStopping). The twin clones the tensors.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    """Stop when the validation loss hasn't improved for `patience` epochs, restore the best weights."""  # noqa: E501

    def __init__(self, patience: int = 25, min_delta: float = 0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.epoch, self.state = math.inf, -1, None

    def step(self, epoch: int, value: float, model: nn.Module) -> bool:
        if value < self.best - self.min_delta:
            self.best, self.epoch = value, epoch
            self.state = {k: v.clone() if healthy else v for k, v in model.state_dict().items()}
        return epoch - self.epoch >= self.patience

    def restore(self, model: nn.Module) -> None:
        print(f"restoring the weights of epoch {self.epoch} (val {self.best:.4f})")
        model.load_state_dict(self.state)


def concrete(n: int, rng: np.random.Generator):
    cement, slag, ash = rng.uniform(120, 520, n), rng.gamma(0.8, 90, n), rng.gamma(0.7, 70, n)
    water, plast = rng.normal(180, 20, n), rng.gamma(1.2, 5, n)
    coarse, fine = rng.normal(970, 75, n), rng.normal(770, 75, n)
    age = rng.choice([1, 3, 7, 14, 28, 56, 90, 180], n).astype(float)
    supplier, plant = rng.integers(0, 12, n), rng.integers(0, 20, n)
    binder = cement + 0.75 * slag + 0.5 * ash
    ratio = water / binder
    strength = 95 * np.exp(-1.6 * ratio) * (0.35 + 0.65 * np.log1p(age) / np.log(91))
    strength += (
        0.25 * plast - 0.004 * (coarse - 970) + 3 * np.sin(supplier) + 1.5 * np.cos(2 * plant)
    )
    strength += rng.normal(0, 5.0, n)
    x = np.stack([cement, slag, ash, water, plast, coarse, fine, np.log1p(age)], 1)
    return x, np.stack([supplier, plant], 1), strength


class ConcreteNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.supplier, self.plant = nn.Embedding(12, 6), nn.Embedding(20, 8)
        self.net = nn.Sequential(
            nn.Linear(22, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 1)
        )

    def forward(self, x, cats):
        return self.net(
            torch.cat([x, self.supplier(cats[:, 0]), self.plant(cats[:, 1])], 1)
        ).squeeze(1)


rng = np.random.default_rng(seed)
x, cats, y = concrete(700 + 250 + 600, rng)
mean, std, y_mean, y_std = x[:700].mean(0), x[:700].std(0), y[:700].mean(), y[:700].std()
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor((y - y_mean) / y_std, dtype=torch.float32)
cats = torch.tensor(cats)
train, valid, test = (
    TensorDataset(x[a:b], cats[a:b], y[a:b]) for a, b in ((0, 700), (700, 950), (950, 1550))
)

model = ConcreteNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(train, 32, shuffle=True)
stopper = EarlyStopping()


@torch.no_grad()
def mse(part: TensorDataset) -> float:
    model.eval()
    x, cats, y = part.tensors
    return nn.functional.mse_loss(model(x, cats), y).item()


for epoch in range(120):
    model.train()
    total = 0.0
    for xb, cb, yb in loader:
        loss = nn.functional.mse_loss(model(xb, cb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    val = mse(valid)
    if epoch % 5 == 0:
        print(f"epoch {epoch} train {total / 700:.4f} val {val:.4f}")
    if stopper.step(epoch, val, model):
        print(f"early stop at epoch {epoch}: train {total / 700:.4f} val {val:.4f}")
        break
stopper.restore(model)
print(
    f"after restore: val mse {mse(valid):.4f}  test mse {mse(test):.4f}  test RMSE {math.sqrt(mse(test)) * y_std:.2f} MPa"  # noqa: E501
)
