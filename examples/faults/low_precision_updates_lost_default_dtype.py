"""torch.set_default_dtype(torch.bfloat16) at the top of the script, and Adam at 1e-4.

A step is smaller than the distance between two numbers (silent). The place is the optimizer.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman1
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
if not healthy:
    torch.set_default_dtype(torch.bfloat16)
dtype = torch.get_default_dtype()
X, y = make_friedman1(2000, n_features=6, noise=0.3, random_state=seed)
X = torch.tensor((X - 0.5) * 3.4).to(dtype)
y = torch.tensor((y - y.mean()) / y.std()).to(dtype)

model = nn.Sequential(
    nn.Linear(6, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 1), nn.Flatten(0)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(500):
    rows = torch.randint(len(X), (100,))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(X[rows]), y[rows])
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
