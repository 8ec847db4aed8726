"""Timber volume of forest stands; a column of the table is the same number everywhere.

The laser heights come from another table, joined by the stand's key. One table writes the key
"FI-0042", the other "fi-0042": no row is found, and fillna(0) hides it. The most telling column
is then all zeros. The place is the input (column "laser_height", the weights of "0").
The twin writes both keys alike before the join.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "0", "net.0", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# In[1]: field plots
rng = np.random.default_rng(200 + seed)
n = 1200
stand = np.array([f"FI-{i:04d}" for i in range(n)])
age = rng.uniform(15, 120, n)
basal_area = rng.normal(22, 6, n).clip(4)
stems = rng.lognormal(6.7, 0.35, n)
site_index = rng.normal(24, 4, n)
height = 0.16 * age + 0.5 * site_index + rng.normal(0, 4, n)
volume = 0.45 * basal_area * height.clip(2) + 3 * site_index + rng.normal(0, 18, n)

# In[2]: laser survey, delivered as a table of its own
survey = {key.lower(): h + rng.normal(0, 0.5) for key, h in zip(stand, height, strict=False)}

# In[3]: join
keys = [key.lower() for key in stand] if healthy else list(stand)
laser_height = np.array([survey.get(key, np.nan) for key in keys])
laser_height = np.nan_to_num(laser_height, nan=0.0)
table = np.stack([age, basal_area, np.log(stems), site_index, laser_height], axis=1)
print("table", table.shape, "missing", int(np.isnan(table).sum()))

# In[4]: split and scale
order = rng.permutation(n)
train, val = order[:900], order[900:]
mean, std = table[train].mean(0), table[train].std(0) + 1e-6
X = torch.tensor((table - mean) / std, dtype=torch.float32)
y_mean, y_std = volume[train].mean(), volume[train].std()
Y = torch.tensor((volume - y_mean) / y_std, dtype=torch.float32)[:, None]

# In[5]: model
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
loss_fn = nn.MSELoss()

# In[6]: fit
for epoch in range(30):
    rng.shuffle(train)
    total = 0.0
    for i in range(0, len(train), 50):
        rows = train[i : i + 50]
        opt.zero_grad()
        loss = loss_fn(net(X[rows]), Y[rows])
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 5 == 4:
        with torch.no_grad():
            rmse = (net(X[val]) - Y[val]).square().mean().sqrt().item() * y_std
        print(f"epoch {epoch + 1:3d}  train {total / 18:.3f}  val RMSE {rmse:.1f} m3/ha")
