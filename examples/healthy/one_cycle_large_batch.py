"""Half of the data in each batch and a one-cycle schedule with a large rate in its middle."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "a few large batches, a rate that grows 25 times and ends ten thousand times smaller"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=180)
for step, (rows, labels) in enumerate(batches(x, y, size=640, steps=180, seed=seed)):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(rows), labels)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(x_val), y_val)
print(f"loss {loss.item():.3f}, val {val_loss.item():.3f}")
