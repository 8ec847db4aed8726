"""zero_grad() stands between backward() and step(): each step finds no gradient.

Nothing changes and the loss stays at its start. The place is the loop. Exact.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 32), nn.ReLU(), nn.Linear(32, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    for pixels, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        if healthy:
            optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        if not healthy:
            optimizer.zero_grad()
        optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
