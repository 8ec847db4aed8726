"""GradScaler(growth_interval=1, backoff_factor=0.95): the scale is doubled at every chance.

Most steps overflow and are left out. The place is the loop.
"""

import torch
from data import arguments
from sklearn.datasets import make_classification
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
X, y = make_classification(1500, n_features=20, n_informative=10, n_classes=3, random_state=seed)
X, y = torch.tensor(X).float(), torch.tensor(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 3)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
if healthy:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
else:
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=2.0**30, growth_interval=1, growth_factor=2.0, backoff_factor=0.95
    )
criterion = nn.CrossEntropyLoss()
for step in range(250):
    rows = torch.randint(len(X), (64,))
    optimizer.zero_grad()
    with torch.autocast(device_type="cpu", dtype=torch.float16):
        output = model(X[rows])
        loss = criterion(output, y[rows])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3f}, scale {scaler.get_scale():g}")
