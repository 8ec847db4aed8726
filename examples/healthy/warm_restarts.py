"""A CNN on the digits under cosine annealing with warm restarts.

At each restart the rate jumps from nearly zero back to its maximum and the loss rises for a while,
as is known of the method; the run ends at the end of a cycle.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the rate collapses by a factor of 100 and jumps up again, three times, and the loss with it"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(96, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    optimizer, T_0=4 * len(loader), T_mult=1, eta_min=1e-3
)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, accuracy = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch + 1}: train {total / len(loader):.3f}  val {val:.3f}  accuracy "
        f"{accuracy:.3f}"
    )
