"""Four labels of ten are wrong, as a cheap annotation leaves them.

The loss falls slowly; what is right is learned first, then the wrong labels by heart, and the
validation loss rises (silent). The place is the loader.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment", "overfit")
PLACE = ("loader", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
if not healthy:
    wrong = torch.rand(len(y)) < 0.4
    y = torch.where(wrong, torch.randint(10, y.shape), y)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    model.train()
    for images, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = criterion(scores, y_val)
accuracy = (scores.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
