"""House prices from a table: standardised columns and target, Huber loss, plateau schedule.

The everyday regression. The target is the price, standardised by the training part; the errors are
told in dollars. The best weights by validation are kept, the test part is looked at once.
"""

import copy

import torch
from data import arguments, houses, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the rate is cut by a plateau rule, and the early stop may end the run before its last epoch"

_, seed = arguments(__doc__)

x, price, x_rest, price_rest = houses(seed, n=3200, raw=True, raw_target=True)
x_val, price_val, x_test, price_test = (
    x_rest[:400],
    price_rest[:400],
    x_rest[400:],
    price_rest[400:],
)
x, x_val, x_test = standardise(x, x_val, x_test)
mean, std = price.mean(), price.std()
y, y_val = (price - mean) / std, (price_val - mean) / std

model = nn.Sequential(
    nn.Linear(x.shape[1], 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=3)
criterion = nn.HuberLoss()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


def validate():
    model.eval()
    with torch.no_grad():
        guess = model(x_val)
        return criterion(guess, y_val).item(), (guess - y_val).abs().mean().item() * std.item()


best, best_state, waited = float("inf"), None, 0
for epoch in range(1, 31):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    val_loss, val_error = validate()
    plateau.step(val_loss)
    if val_loss < best - 1e-4:
        best, best_state, waited = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    if epoch % 3 == 0:
        rate = optimizer.param_groups[0]["lr"]
        print(
            f"epoch {epoch:2d} train {total / len(x):.4f} val {val_loss:.4f} "
            f"error ${val_error:,.0f} rate {rate:.1e}"
        )
    if waited >= 9:
        break

model.load_state_dict(best_state)
model.eval()
with torch.no_grad():
    guess = model(x_test) * std + mean
r2 = 1 - ((guess - price_test) ** 2).mean() / price_test.var()
print(f"test: R2 {r2:.3f}, mean error ${(guess - price_test).abs().mean():,.0f}")
