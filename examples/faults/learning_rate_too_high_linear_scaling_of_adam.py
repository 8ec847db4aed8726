"""Digits with a small CNN: the rate is "scaled with the batch size" from the wrong base.

`lr = base_lr * batch_size / 256` is the rule for SGD with base 0.1; the config was then changed to
Adam (faster in the first try with batch size 2, where 0.1 * 2 / 256 happened to be fine), and with
128 a batch Adam runs at 0.05. The loss jumps around and the accuracy with it. The place is the
optimizer. The twin has a base rate made for Adam.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ("dead_relu",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "optimizer": "Adam",
    "base_lr": 0.004 if healthy else 0.1,
    "batch_size": 128,
    "epochs": 20,
    "channels": (24, 48),
}


class Net(nn.Module):
    def __init__(self, channels, classes=10):
        super().__init__()
        a, b = channels
        self.conv1 = nn.Conv2d(1, a, 3, padding=1)
        self.conv2 = nn.Conv2d(a, b, 3, padding=1)
        self.fc1 = nn.Linear(b * 4, 96)
        self.fc2 = nn.Linear(96, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def build_optimizer(model):
    lr = config["base_lr"] * config["batch_size"] / 256
    return getattr(torch.optim, config["optimizer"])(model.parameters(), lr=lr)


def evaluate(model, loader):
    model.eval()
    loss = right = count = 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss += nn.functional.cross_entropy(logits, y, reduction="sum").item()
            right += (logits.argmax(1) == y).sum().item()
            count += len(y)
    return loss / count, right / count


x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), batch_size=config["batch_size"], shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=256)
model = Net(config["channels"])
optimizer = build_optimizer(model)
for epoch in range(config["epochs"]):
    model.train()
    running = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, accuracy = evaluate(model, val)
    print(
        f"{epoch:2d}: train {running / len(train):.3f} val {val_loss:.3f} accuracy {accuracy:.3f}"
    )
