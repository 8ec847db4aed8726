"""Training rows go through log1p and a scaler, validation rows through the scaler alone.

The training goes well (silent) and validation is bad from the first epoch. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
spent = rng.lognormal(4, 1, (2000, 6))
log = np.log1p(spent)
score = (log - log.mean(0)) @ np.array([1.0, -0.8, 0.6, 0.0, 0.4, -0.3])
label = (score + rng.normal(0, 0.4, 2000) > 0).astype(int) + (score > 1.5)
train_x, val_x, train_y, val_y = train_test_split(spent, label, random_state=seed)
scaler = StandardScaler()
train_x = scaler.fit_transform(np.log1p(train_x))
val_x = scaler.transform(np.log1p(val_x) if healthy else val_x)


def loader(x, y, shuffle):
    data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    return DataLoader(data, batch_size=50, shuffle=shuffle)


model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
train_loader, val_loader = loader(train_x, train_y, True), loader(val_x, val_y, False)
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = [criterion(model(x), y).item() for x, y in val_loader]
    print(f"epoch {epoch}: {loss.item():.3f}, validation {np.mean(val):.3f}")
