"""A CNN on digits is trained with shifts, noise, erased patches and mixup, and validated on clean
images.

The training loss stays far above the validation loss, since the task in training is much harder;
the validation is as good as it should be.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "training inputs are blends with noise and holes, the training loss is several times the "
    "validation loss"
)

_, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = images(seed)


def augment(x):
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, (dy, dx), (2, 3))
    x = x + 0.3 * torch.randn_like(x)
    top = torch.randint(0, 6, (len(x),))
    left = torch.randint(0, 6, (len(x),))
    grid = torch.arange(8)
    rows = (grid >= top[:, None]) & (grid < top[:, None] + 3)
    cols = (grid >= left[:, None]) & (grid < left[:, None] + 3)
    hole = (rows[:, :, None] & cols[:, None, :]).unsqueeze(1)
    return x.masked_fill(hole, 0.0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24)
        self.conv2, self.bn2 = nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48)
        self.fc = nn.Linear(48 * 4, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


model = Net()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
blend = torch.distributions.Beta(0.4, 0.4)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 26):
    model.train()
    total = 0.0
    for clean, yb in loader:
        xb = augment(clean)
        share, other = blend.sample().item(), torch.randperm(len(xb))
        out = model(share * xb + (1 - share) * xb[other])
        loss = share * criterion(out, yb) + (1 - share) * criterion(out, yb[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    schedule.step()
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"epoch {epoch}: train {total / len(y_train):.4f} "
            f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
        )
