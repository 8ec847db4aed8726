"""How far diabetes went after a year, ported from scikit-learn's MLPRegressor.

`MLPRegressor(hidden_layer_sizes=(128, 64), max_iter=80, early_stopping=True)` became a loop over
80 epochs; the early stopping was not ported, as 80 was "the number of iterations". On 331 patients
the best is over within 20 epochs. The place is the loop. The twin stops eight epochs after the
best and goes back to it.
"""

import copy
from itertools import pairwise

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = diabetes(seed)
y, y_val = y[:, None], y_val[:, None]
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


class MLPRegressor(nn.Module):
    def __init__(self, hidden_layer_sizes=(128, 64)):
        super().__init__()
        sizes = [x.shape[1], *hidden_layer_sizes]
        layers = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

    def forward(self, patient):
        return self.net(patient)


model = MLPRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=1e-4)
max_iter, n_iter_no_change = 80, 8
best, best_epoch, best_weights = float("inf"), 0, None


def validate():
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x_val), y_val).item()


for epoch in range(1, max_iter + 1):
    model.train()
    total = 0.0
    for patient, progress in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(patient), progress)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(patient) / len(x)
    val = validate()
    if val < best:
        best, best_epoch, best_weights = val, epoch, copy.deepcopy(model.state_dict())
    if epoch % 5 == 0:
        print(
            f"epoch {epoch} train {total:.4f} val {val:.4f} R2 {1 - val / y_val.var().item():.3f}"
        )
    if healthy and epoch - best_epoch >= n_iter_no_change:
        model.load_state_dict(best_weights)
        print(f"stopped after {epoch} epochs, back to {best_epoch}")
        break
print(f"final: val {validate():.4f}")
