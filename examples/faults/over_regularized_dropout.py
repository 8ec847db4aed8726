"""nn.Dropout(0.9): the share to keep was meant, as in an older library.

One unit in ten is left in each of two layers. The training loss stays far above the evaluation
loss of the same images (silent). The place is the dropout layers.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("2", "5")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
p = 0.1 if healthy else 0.9
model = nn.Sequential(
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(p),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(p),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    for images, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
