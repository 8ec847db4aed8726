"""An MLP that predicts house prices, with the prices in dollars.

The features are standardised, the target is left at 15,000 to 500,000. The output starts at zero
and Adam moves it by some thousandths a step, so the predictions never come near. The place is the
labels. The twin standardises the target by the training part and turns predictions back for the
report.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = houses(seed, raw_target=True)
mean, std = (y.mean(), y.std()) if healthy else (0.0, 1.0)
loader = DataLoader(TensorDataset(x, (y - mean) / std), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()


def evaluate():
    model.eval()
    with torch.no_grad():
        prediction = model(x_val).squeeze(1) * std + mean
    residual = ((prediction - y_val) ** 2).mean()
    return residual.sqrt().item(), (1 - residual / y_val.var()).item()


for epoch in range(1, 21):
    model.train()
    running = 0.0
    for features, price in loader:
        prediction = model(features).squeeze(1)
        loss = loss_fn(prediction, price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    rmse, r2 = evaluate()
    print(f"epoch {epoch}: loss {running / len(loader):.4g}, RMSE ${rmse:,.0f}, R2 {r2:.3f}")
