"""One digit in 60 is a seven; a network that never says "seven" is right in 98 of 100 cases.

The loss falls at once, to a tenth, and stays (silent). The place is the loader.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
others, sevens = (y != 7).nonzero()[:, 0], (y == 7).nonzero()[:, 0]
rows = torch.cat([others, sevens[:20]])
x, y = x[rows], (y[rows] == 7).long()

sampler = None
if healthy:
    weight = torch.where(y == 1, 1 / 20, 1 / len(others))
    sampler = WeightedRandomSampler(weight, len(y))
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=sampler is None, sampler=sampler)

model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(7):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
found = model(x_val).argmax(1)
print(f"loss {loss.item():.3f}, sevens found {(found[y_val == 7] == 1).float().mean():.3f}")
