"""An MLP on house prices; StepLR(step_size=5) is stepped for each batch.

The 5 was meant as epochs. With 38 batches per epoch the rate is divided by ten after five BATCHES,
and again after the next five: it is nothing before the first epoch ends. The place is the schedule.
The twin steps per epoch.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.optim.lr_scheduler import StepLR

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("schedule", "learning_rate*", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
net = nn.Sequential(
    nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)
)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
scheduler = StepLR(optimizer, step_size=5, gamma=0.1)


def train(epoch):
    net.train()
    order = torch.randperm(len(x))
    total = 0.0
    for i in range(0, len(x), 40):
        rows = order[i : i + 40]
        optimizer.zero_grad()
        loss = criterion(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
        total += loss.item() * len(rows)
    if healthy:
        scheduler.step()
    return total / len(x)


def validate():
    net.eval()
    with torch.no_grad():
        return criterion(net(x_val), y_val).item()


for epoch in range(12):
    print(f"Epoch {epoch}: train {train(epoch):.4f} val {validate():.4f}")
