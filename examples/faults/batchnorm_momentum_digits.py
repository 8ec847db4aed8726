"""BatchNorm1d(momentum=0.001): in another library's sense of the word, 0.999 of the old value was
meant.

The running statistics stay at their start. Training goes well (silent); evaluation mode gives
another, worse network. The place is the batch norm layers.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ("train_val_mismatch", "overfit")
PLACE = ("1", "4", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed, raw=True)
momentum = 0.1 if healthy else 0.001
model = nn.Sequential(
    nn.Linear(64, 48),
    nn.BatchNorm1d(48, momentum=momentum),
    nn.ReLU(),
    nn.Linear(48, 48),
    nn.BatchNorm1d(48, momentum=momentum),
    nn.ReLU(),
    nn.Linear(48, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    model.train()
    for images, labels in DataLoader(
        TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True
    ):
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
