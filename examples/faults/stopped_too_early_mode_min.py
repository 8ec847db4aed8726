"""A CNN on handwritten digits with noise; early stopping watches the accuracy as if it should
fall.

The class EarlyStopping has mode="min" by default, as most have, and the author hands it the
validation accuracy. After `patience` epochs of rising accuracy the training ends, with the loss
still in steep descent. The place is the loop (EarlyStopping).
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience=6, mode="min", delta=0.0):
        self.patience, self.mode, self.delta = patience, mode, delta
        self.best, self.bad_epochs = None, 0

    def __call__(self, value):
        score = value if self.mode == "max" else -value
        if self.best is None or score > self.best + self.delta:
            self.best, self.bad_epochs = score, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(24 * 2 * 2, 48)
        self.fc2 = nn.Linear(48, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


x, y, x_val, y_val = images(seed)
g = torch.Generator().manual_seed(seed)
x_val = x_val + 0.5 * torch.randn(x_val.shape, generator=g)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)

net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-4, weight_decay=1e-4)
stopper = EarlyStopping(patience=6, mode="max") if healthy else EarlyStopping(patience=6)

for epoch in range(60):
    net.train()
    train_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        outputs = net(inputs + 0.5 * torch.randn_like(inputs))
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    net.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = net(inputs)
            val_loss += criterion(outputs, labels).item()
            correct += (outputs.argmax(1) == labels).sum().item()
    val_acc = correct / len(x_val)
    print(
        f"[{epoch + 1}] train loss {train_loss / len(train_loader):.3f} val loss {val_loss / len(val_loader):.3f} val acc {val_acc:.3f}"  # noqa: E501
    )
    if stopper(val_acc):
        print("early stopping")
        break
