"""House prices from six columns, predicted in dollars as they stand in the file.

The scaler for the prices is there, fitted, and used to report errors; but the tensor that goes
into the Dataset is made from the raw column. The squared error starts at 10^10 and Adam moves the
outputs by thousandths. The place is the labels (their scale). The twin puts the scaled column into
the Dataset.
"""

import numpy as np
import torch
from data import arguments, houses
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("labels", "data", "loss")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x, price, x_val, price_val = houses(seed, raw_target=True)
scaler = StandardScaler().fit(price.numpy()[:, None])
scaled = torch.tensor(scaler.transform(price.numpy()[:, None]), dtype=torch.float32)
train_set = TensorDataset(x, scaled if healthy else price[:, None])
loader = DataLoader(train_set, batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()


def r2():
    model.eval()
    with torch.no_grad():
        said = model(x_val).numpy()
    dollars = scaler.inverse_transform(said)[:, 0] if healthy else said[:, 0]
    truth = price_val.numpy()
    return 1 - np.mean((dollars - truth) ** 2) / truth.var()


for epoch in range(15):
    model.train()
    total = 0.0
    for features, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"Epoch {epoch + 1}/15  loss {total / len(loader):.4g}  val R2 {r2():.3f}")
