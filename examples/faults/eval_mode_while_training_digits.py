"""validate() calls model.eval(), and nothing calls model.train() again.

From the second epoch on batch norm uses its running means and dropout is off. The place is the
loop. The loss still falls (silent). Exact: the model is not in training mode when it is trained.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)

model = nn.Sequential(
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    model.eval()
    with torch.no_grad():
        return sum(criterion(model(images), labels).item() for images, labels in val_loader)


for epoch in range(10):
    if healthy:
        model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    val_loss = validate() / len(val_loader)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
