"""Toxicity of compounds with few measurements; the "best" weights kept are those of the end.

The loop notes the state_dict whenever the validation is at its best, and loads it afterwards. But
state_dict() hands out the tensors of the model itself, and the training goes on writing into
them: what is loaded in the end is what was there already, overfitted by then.
The place is the loop, where the best weights are kept.
The twin keeps a deep copy.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def compounds(n, g):
    """Forty descriptors of a molecule, of which a few matter, and its measured toxicity."""
    x = torch.randn(n, 40, generator=g)
    effect = x[:, 0] + 0.8 * x[:, 1] - 0.6 * x[:, 2].abs() + 0.5 * x[:, 3] * x[:, 4]
    return x, effect / 1.5 + 0.9 * torch.randn(n, generator=g)


def rmse(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).squeeze(1) - y).pow(2).mean().sqrt().item()


g = torch.Generator().manual_seed(seed)
x_train, y_train = compounds(240, g)
x_val, y_val = compounds(300, g)
x_test, y_test = compounds(1000, g)

model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
best, best_state, best_epoch = float("inf"), None, 0
for epoch in range(60):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(24):
        loss = nn.functional.mse_loss(model(x_train[rows]).squeeze(1), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 10
    val = rmse(model, x_val, y_val)
    if val < best:
        best, best_epoch = val, epoch
        best_state = copy.deepcopy(model.state_dict()) if healthy else model.state_dict()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: train {total:.4f} val {val:.4f}")

model.load_state_dict(best_state)
print(f"best epoch {best_epoch + 1} ({best:.4f}); test {rmse(model, x_test, y_test):.4f}")
