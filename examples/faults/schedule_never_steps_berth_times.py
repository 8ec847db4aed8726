"""How long ships stay at their berth; the one-cycle schedule is made but never asked to go on.

OneCycleLR sets the learning rate to a twenty-fifth of its peak when it is constructed and raises it
step by step. The call in the loop was lost when the loop was tidied up, so that the whole training
runs at the rate that was meant for the first step.
The place is the schedule.
The twin calls scheduler.step() after each step of the optimizer.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# %% [markdown]
# # Port calls: hours at berth

# %%
rng = np.random.default_rng(seed)
n = 3000
teu = rng.gamma(2.0, 600, n)
cranes = 1 + rng.binomial(4, np.clip(teu / 4000, 0.1, 0.9))
draught = 7 + teu / 600 + rng.normal(0, 1, n)
tide = rng.uniform(0, 2 * np.pi, n)
weekday = rng.integers(0, 7, n)
night = rng.integers(0, 2, n)
wait_for_tide = np.where(draught > 10, 3 * (1 - np.cos(tide)), 0)
hours = teu / (28 * cranes) + wait_for_tide + 2 * (weekday >= 5) * night + 3
hours = hours + rng.normal(0, 0.8, n)

# %%
x = np.column_stack([teu, cranes, draught, np.sin(tide), np.cos(tide), weekday >= 5, night])
x_train, x_test, h_train, h_test = train_test_split(x, hours, test_size=0.25, random_state=seed)
centre, spread = x_train.mean(0), x_train.std(0)
h_centre, h_spread = h_train.mean(), h_train.std()


def to_tensors(x, h):
    x = torch.tensor((x - centre) / spread, dtype=torch.float32)
    return x, torch.tensor((h - h_centre) / h_spread, dtype=torch.float32).unsqueeze(1)


train_loader = DataLoader(
    TensorDataset(*to_tensors(x_train, h_train)), batch_size=64, shuffle=True, drop_last=True
)
x_test, h_test = to_tensors(x_test, h_test)

# %%
EPOCHS = 12
model = nn.Sequential(nn.Linear(7, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = OneCycleLR(optimizer, max_lr=0.1, epochs=EPOCHS, steps_per_epoch=len(train_loader))

# %%
history = []
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for xb, hb in train_loader:
        loss = criterion(model(xb), hb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if healthy:
            scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        error = (model(x_test) - h_test).abs().mean().item() * h_spread
    history.append((np.mean(losses), error))
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {history[-1][0]:.4f}, off by {error:.2f} h on average")
