"""A CNN that finds the brighter half of noisy images and keeps its validation losses with their
graphs.

The validation runs without no_grad and the loss tensors go into a list: each keeps all the
activations of its forward pass alive, some 8 MB per validation. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x = torch.randn(900, 1, 24, 24, generator=g)
y = torch.randint(0, 2, (900,), generator=g)
x[y == 0, :, :, :12] += 0.15
x[y == 1, :, :, 12:] += 0.15
x, y, x_val, y_val = x[:700], y[:700], x[700:], y[700:]

model = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2),
    nn.ReLU(),
    nn.AvgPool2d(4),
    nn.Conv2d(12, 12, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(432, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=200)
history = []
for step in range(200):
    rows = torch.randint(0, len(x), (50,), generator=g)
    optimizer.zero_grad()
    loss = criterion(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 4 == 3:
        if healthy:
            with torch.no_grad():
                history.append(criterion(model(x_val), y_val).item())
        else:
            history.append(criterion(model(x_val), y_val))
print(f"train {loss.item():.3f}, validation {float(history[-1]):.3f}")
