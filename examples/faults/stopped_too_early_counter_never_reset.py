"""Regression of a noisy field with a Fourier-feature net and small batches; early stopping by
hand.

The counter of epochs without improvement is never set back to 0 when there is one: after five
setbacks in all, however far apart, training ends - long before it has converged. The place is the
loop. The loss falls (silent).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def field(p):
    x, y = p.T
    return (5 * x).sin() * (4 * y).cos() + 0.8 * (9 * x * y + 1).sin() + 0.5 * (x - y)


points = 2 * torch.rand(1600, 2) - 1
values = field(points) + 0.15 * torch.randn(len(points))
points_val = 2 * torch.rand(120, 2) - 1
values_val = field(points_val) + 0.15 * torch.randn(len(points_val))
mean, std = values.mean(), values.std()
values, values_val = (values - mean) / std, (values_val - mean) / std


class FourierNet(nn.Module):
    def __init__(self, n_freq=24, width=48):
        super().__init__()
        self.register_buffer("freq", 2.5 * torch.randn(2, n_freq))
        self.net = nn.Sequential(
            nn.Linear(2 * n_freq, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, p):
        a = p @ self.freq
        return self.net(torch.cat([a.sin(), a.cos()], 1)).squeeze(1)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for p, v in loader:
        loss = F.mse_loss(model(p), v)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(p)
    return total / len(loader.dataset)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return F.mse_loss(model(points_val), values_val).item()


model = FourierNet()
loader = DataLoader(TensorDataset(points, values), batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
PATIENCE = 5
best_loss, counter, best_state = math.inf, 0, None
for epoch in range(40):
    train_loss, val_loss = train_one_epoch(model, loader, optimizer), evaluate(model)
    if val_loss < best_loss:
        best_loss = val_loss
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
        if healthy:
            counter = 0
    else:
        counter += 1
        if counter >= PATIENCE:
            print(f"Early stopping at epoch {epoch}")
            break
    if epoch % 5 == 0:
        print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} counter {counter}")
model.load_state_dict(best_state)
print(f"last train {train_loss:.4f}, best val {evaluate(model):.4f} after {epoch + 1} epochs")
