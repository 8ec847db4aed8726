"""A CNN on digit images by Adam with its two betas swapped: (0.999, 0.9).

The first moment remembers a thousand steps, the second only ten: the steps follow long outdated
gradients, and the loss swings. The place is the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BETAS = (0.9, 0.999) if healthy else (0.999, 0.9)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 16, 10),
    )


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
model = build()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=BETAS)
for epoch in range(6):
    running = 0.0
    for img, lab in loader:
        optimizer.zero_grad()
        loss = criterion(model(img), lab)
        loss.backward()
        optimizer.step()
        running += loss.item()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1}: {running / len(loader):.3f}, validation accuracy {acc:.3f}")
