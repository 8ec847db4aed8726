"""ReduceLROnPlateau in its default mode, "min", is told the validation accuracy.

The first, worst accuracy is the best it ever sees; every third epoch it divides the rate by five.
After sixteen epochs the rate is a three-thousandth, and training stands at what it had by then.
The place is the optimizer (its schedule).
"""

import torch
from data import arguments, images
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class DepthwiseNet(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.entry = nn.Conv2d(1, channels, 3, padding=1)
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.pointwise = nn.Conv2d(channels, channels, 1)
        self.pool = nn.AvgPool2d(2)
        self.classifier = nn.Linear(channels * 16, 10)

    def forward(self, x):
        x = torch.relu(self.entry(x))
        x = torch.relu(self.pointwise(self.depthwise(x)))
        return self.classifier(self.pool(x).flatten(1))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    seen = total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        seen += len(y)
    return total / seen


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=225)
model = DepthwiseNet()
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(
    optimizer, mode="max" if healthy else "min", factor=0.2, patience=2
)
for epoch in range(24):
    train_loss = train_one_epoch(model, train_loader, nn.CrossEntropyLoss(), optimizer)
    val_accuracy = evaluate(model, val_loader)
    scheduler.step(val_accuracy)
print(
    f"loss {train_loss:.3f}, accuracy {val_accuracy:.3f}, "
    f"rate {optimizer.param_groups[0]['lr']:.1e}"
)
