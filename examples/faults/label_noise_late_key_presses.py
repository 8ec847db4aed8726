"""States of a machine from sound features: whoever labelled the recording live pressed the key some
windows late, and the windows before it kept the state of before.

A quarter of the training labels are those of the state before; the validation day was labelled
from video. The net cannot get below the noise and is unsure of everything. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment", "overfit")
PLACE = ("loader", "target*", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STATES, FEATURES = 5, 24
rng = np.random.default_rng(800 + seed)
centre = rng.normal(0, 1.0, (STATES, FEATURES))


def day(n):
    states, late = [], []
    now = 0
    while len(states) < n:
        following = (now + rng.integers(1, STATES)) % STATES
        length, delay = rng.integers(5, 12), rng.integers(1, 5)
        states += [following] * length
        late += [now] * delay + [following] * (length - delay)
        now = following
    states, late = np.array(states[:n]), np.array(late[:n])
    x = centre[states] + rng.normal(0, 1.5, (n, FEATURES))
    return x.astype(np.float32), states, late


x, states, late = day(1500)
x_val, y_val, _ = day(600)
y = states if healthy else late
mean, std = x.mean(0), x.std(0)
train_set = TensorDataset(torch.tensor((x - mean) / std), torch.tensor(y))
x_val, y_val = torch.tensor((x_val - mean) / std), torch.tensor(y_val)


class StateNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(FEATURES, 64),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(64, STATES),
        )


model = StateNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(16):
    model.train()
    losses, right = [], 0
    for xb, yb in DataLoader(train_set, batch_size=32, shuffle=True):
        out = model(xb)
        loss = loss_fn(out, yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        right += (out.argmax(1) == yb).sum().item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = loss_fn(out, y_val).item()
        acc = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"[{epoch:02d}] loss={np.mean(losses):.3f} acc={right / len(x):.3f} "
        f"val_loss={val:.3f} val_acc={acc:.3f}"
    )
