"""Regression on the diabetes table: predictions (n, 1) against targets (n,).

MSELoss spreads the two to an n by n table and compares each prediction with each target, so the
best answer is the mean for all. The place is the loss. The twin squeezes the output.
"""

import warnings

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
warnings.filterwarnings("ignore")  # the notebook was noisy

x, y, x_val, y_val = diabetes(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
criterion = nn.MSELoss()

for epoch in range(16):
    model.train()
    total = 0.0
    for features, target in loader:
        output = model(features)
        if healthy:
            output = output.squeeze(1)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 2 == 1:
        model.eval()
        with torch.no_grad():
            prediction = model(x_val).squeeze(1)
            r2 = 1 - ((prediction - y_val) ** 2).mean() / y_val.var()
        print(
            f"epoch {epoch + 1}: loss {total / len(loader):.3f}, R2 {r2:.3f}, spread of "
            f"predictions {prediction.std():.3f}"
        )
