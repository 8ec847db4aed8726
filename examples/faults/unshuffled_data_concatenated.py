"""Four files, one for each class, are put one after another, and the loader does not shuffle.

Batches have one class each; the network forgets the others. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
files = [rng.normal(rng.normal(0, 1.2, 8), 1.0, (300, 8)) for _ in range(4)]
x = torch.tensor(np.concatenate(files), dtype=torch.float32)
y = torch.arange(4).repeat_interleave(300)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=healthy)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch + 1}, mean loss {running / len(loader):.4f}")
with torch.no_grad():
    print(f"accuracy {(model(x).argmax(1) == y).float().mean():.3f}")
