"""The loss of a picture is divided by its number of pixels once more; float16 without a scaler.

Gradients of a hundred-thousandth are below what float16 can hold. The place are the layers.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman2
from sklearn.preprocessing import scale
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("vanishing_gradient",)
PLACE = ("0", "2", "4", "*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
X, y = make_friedman2(n_samples=1500, noise=5.0, random_state=seed)
X = torch.tensor(scale(X), dtype=torch.float32)
y = torch.tensor(scale(y), dtype=torch.float32).view(-1, 1)
pixels = 640 * 480

model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-12)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, enabled=healthy)
for step in range(300):
    rows = torch.randint(0, len(X), (64,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(X[rows])
    loss = nn.functional.mse_loss(predicted.float(), y[rows]) / pixels
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"share of the variance left {loss.item() * pixels:.3f}")
