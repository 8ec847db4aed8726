"""Wave shapes with a GRU: the exponential schedule is stepped with every batch.

`ExponentialLR(gamma=0.8)` was meant once an epoch. In a refactoring `scheduler.step()` went with
`optimizer.step()` into the helper `update`, which is called for every batch; after 60 batches the
rate is a millionth. The place is the schedule. The twin's gamma is spread over the batches of an
epoch.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("schedule",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class ShapeNet(nn.Module):
    def __init__(self, hidden=32, classes=3):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.head(states.mean(1))


def update(model, optimizer, scheduler, loss):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()


x, y = waves(seed, n=1000)
train_set, val_set = random_split(TensorDataset(x, y), [800, 200])
train = DataLoader(train_set, batch_size=40, shuffle=True)
val = DataLoader(val_set, batch_size=200)

model = ShapeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
gamma = 0.8 ** (1 / len(train)) if healthy else 0.8
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma)
for epoch in range(14):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        update(model, optimizer, scheduler, loss)
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        accuracy = sum((model(xb).argmax(1) == yb).float().mean().item() for xb, yb in val)
    print(f"epoch {epoch:2d}  loss {total:.3f}  val accuracy {accuracy:.3f}")
