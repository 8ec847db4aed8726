"""A CNN reads handwritten digits with a weight decay that was meant for another optimizer.

The recipe was AdamW with weight_decay 0.1. When the team went over to SGD with momentum at a rate
of 0.1 the two hyperparameters were looked up again, the decay was not: here it is an L2 term in
the gradient of the same size as the weights and pulls them to zero faster than the data can hold
them. The place is the optimizer. The twin uses the usual 5e-4.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

HPARAMS = {
    "optimizer": {"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4 if healthy else 0.1},
    "batch_size": 64,
    "epochs": 12,
}


class DigitNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 4, 64)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.drop(x))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    total, right = 0.0, 0
    for x, y in loader:
        scores = model(x)
        total += criterion(scores, y).item() * len(y)
        right += (scores.argmax(1) == y).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


def main():
    x, y, x_val, y_val = images(seed)
    train_loader = DataLoader(TensorDataset(x, y), HPARAMS["batch_size"], shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), 256)
    model = DigitNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), **HPARAMS["optimizer"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, HPARAMS["epochs"], 1e-3)
    for epoch in range(HPARAMS["epochs"]):
        train_loss = train_one_epoch(model, train_loader, criterion, optimizer)
        val_loss, accuracy = evaluate(model, val_loader, criterion)
        scheduler.step()
        print(f"[{epoch:2d}] train {train_loss:.3f}  val {val_loss:.3f}  acc {accuracy:.3f}")


if __name__ == "__main__":
    main()
