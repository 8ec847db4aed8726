"""An MLP on digits held in bfloat16, with Adam at 2e-4 on the bfloat16 weights themselves.

Most steps are smaller than half the distance between two neighbouring bfloat16 numbers, so that
adding them changes nothing. In float32 the same training converges. The place is the optimizer.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("", "optimizer", "fc*", "net*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
dtype = torch.float32 if healthy else torch.bfloat16
x, y, x_val, y_val = digits(seed)
x, x_val = x.to(dtype), x_val.to(dtype)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 256)
        self.fc2 = nn.Linear(256, 256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


model = Net().to(dtype)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
for xb, yb in batches(x, y, size=32, steps=600, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(xb).float(), yb)
    loss.backward()
    optimizer.step()
    scheduler.step()
with torch.no_grad():
    out = model(x_val).float()
    acc = (out.argmax(1) == y_val).float().mean().item()
print(f"val loss {criterion(out, y_val).item():.3f}, accuracy {acc:.3f}")
