"""The yield of fields from weather and soil, of which more than half is chance. Training stops when
the validation loss has not got better for some epochs, and the best weights are put back.

What looks odd: after a few epochs the loss is flat at a high level, the best that can be done, and
the run ends early, long before the last epoch that it was allowed. It prints that level.
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a loss that stays at a high level, the noise; ends long before the last epoch; goes back"

_, seed = arguments(__doc__)
NOISE = 1.3


def fields(n, g):
    x = torch.randn(n, 9, generator=g)
    rain, heat, acid, clay = x[:, 0], x[:, 1], x[:, 2], x[:, 3]
    y = 0.7 * rain - 0.5 * (heat - 0.3).square() + 0.4 * torch.tanh(2 * acid) + 0.3 * rain * clay
    return x, y + 0.5 + NOISE * torch.randn(n, generator=g)


class EarlyStopping:
    """Patience is counted in epochs; the best state is kept in memory."""

    def __init__(self, patience=6):
        self.patience, self.best, self.since, self.state = patience, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.since = value, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.since += 1
        return self.since >= self.patience


def mean_loss(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, count = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = criterion(model(x).squeeze(1), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total, count = total + loss.item() * len(x), count + len(x)
    return total / count


g = torch.Generator().manual_seed(seed)
x, y = fields(4000, g)
train = DataLoader(TensorDataset(x[:2600], y[:2600]), batch_size=100, shuffle=True)
val = DataLoader(TensorDataset(x[2600:3300], y[2600:3300]), batch_size=350)
test = DataLoader(TensorDataset(x[3300:], y[3300:]), batch_size=350)
model = nn.Sequential(
    nn.Linear(9, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.SiLU(), nn.Dropout(0.1),
    nn.Linear(32, 1),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.02)
criterion = nn.MSELoss()
stop = EarlyStopping()
for epoch in range(100):
    loss = mean_loss(model, train, criterion, optimizer)
    val_loss = mean_loss(model, val, criterion)
    print(f"epoch {epoch} loss {loss:.4f} val {val_loss:.4f} (noise {NOISE**2:.4f})")
    if stop(val_loss, model):
        break
model.load_state_dict(stop.state)
error = mean_loss(model, test, criterion)
print(
    f"stopped after {epoch + 1} epochs, best val {stop.best:.4f}, test {error:.4f} "
    f"of {y[3300:].var():.4f}, loss {loss:.4f}"
)
