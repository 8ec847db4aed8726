"""Machine states from vibration features: each step fetches the first batch of a new iterator.

`next(iter(loader))` was handy in the notebook for a look at one batch. In the loop it
makes a new iterator at each step, and as the loader doesn't shuffle (the table had been
shuffled before), each step gets the same 32 rows.
The place is the loader or the loop. The twin walks through the loader again and again.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STEPS = 400

means = torch.randn(5, 24) * 0.6
state = torch.randint(0, 5, (2000,))
vibration = means[state] + torch.randn(2000, 24)
train_loader = DataLoader(TensorDataset(vibration[:1500], state[:1500]), batch_size=32)
x_test, y_test = vibration[1500:], state[1500:]

model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

endless = itertools.chain.from_iterable(itertools.repeat(train_loader))
for step in range(1, STEPS + 1):
    x, y = next(endless) if healthy else next(iter(train_loader))
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean().item()
        model.train()
        print(f"[{step:>4}/{STEPS}] loss {loss.item():.4f} | test acc {acc:.3f}")
