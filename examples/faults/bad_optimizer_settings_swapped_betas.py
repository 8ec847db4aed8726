"""AdamW(betas=(0.999, 0.9)): the two are the wrong way round, so that steps follow old gradients.

The loss falls, and rises and falls again (silent). The place is the optimizer.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
X, Y = make_moons(n_samples=1000, noise=0.15, random_state=seed)
X = torch.from_numpy(X).float()
Y = torch.from_numpy(Y).float().unsqueeze(1)

mlp = nn.Sequential(
    nn.Linear(2, 32),
    nn.GELU(),
    nn.Linear(32, 32),
    nn.GELU(),
    nn.Linear(32, 1),
)
loss_fn = nn.BCEWithLogitsLoss()
betas = (0.9, 0.999) if healthy else (0.999, 0.9)
optim = torch.optim.AdamW(mlp.parameters(), lr=5e-3, betas=betas)

for step in range(400):
    idx = torch.randint(0, len(X), (64,))
    optim.zero_grad()
    loss = loss_fn(mlp(X[idx]), Y[idx])
    loss.backward()
    optim.step()
    if step % 100 == 0:
        print(step, loss.item())
with torch.no_grad():
    accuracy = ((mlp(X) > 0) == (Y > 0.5)).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
