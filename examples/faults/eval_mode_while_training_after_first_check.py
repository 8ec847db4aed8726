"""Trains a CNN with batch norm and dropout whose evaluate() switches to eval mode and nobody
switches back.

The untrained net is evaluated once before the first epoch, so that all training runs in eval mode:
batch norm uses its first running statistics (0 and 1) for ever and dropout does nothing. The twin
calls model.train() at the start of each epoch. The place is `norm1`, `norm2`, `norm3`, `drop` or
the loop.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("norm1", "norm2", "norm3", "drop", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.norm3 = nn.BatchNorm2d(32)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.max_pool2d(torch.relu(self.norm2(self.conv2(x))), 2)
        x = torch.max_pool2d(torch.relu(self.norm3(self.conv3(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


def evaluate(model, loader, criterion):
    model.eval()
    loss, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            out = model(xb)
            loss += criterion(out, yb).item() * len(xb)
            correct += (out.argmax(1) == yb).sum().item()
            n += len(xb)
    return loss / n, correct / n


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

val_loss, val_acc = evaluate(model, val_loader, criterion)
print(f"before training: val loss {val_loss:.4f} acc {val_acc:.3f}")
for epoch in range(1, 11):
    if healthy:
        model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    val_loss, val_acc = evaluate(model, val_loader, criterion)
    print(
        f"epoch {epoch}: train {total / len(train_loader):.4f} val {val_loss:.4f} acc {val_acc:.3f}"
    )
