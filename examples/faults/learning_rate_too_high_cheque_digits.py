"""A CNN with dropout reads the digits on cheques; Adam's learning rate is 0.1.

The rate was carried over from a training by SGD; for Adam it is a hundred times too high: the
loss first jumps, then stays at that of guessing. The place is the optimizer.
"""

import torch
from data import arguments, images
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ("dead_relu",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LEARNING_RATE = 1e-3 if healthy else 0.1
BATCH_SIZE = 32
EPOCHS = 10


class ChequeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.2)
        self.fc1 = nn.Linear(24 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.drop(torch.relu(self.fc1(torch.flatten(x, 1))))
        return self.fc2(x)


def train(model, loader, criterion, optimizer):
    model.train()
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


def test(model, loader, criterion):
    model.eval()
    loss, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for inputs, labels in loader:
            outputs = model(inputs)
            loss += criterion(outputs, labels).item() * len(labels)
            correct += (outputs.argmax(1) == labels).sum().item()
            count += len(labels)
    return loss / count, correct / count


def main():
    x, y, x_val, y_val = images(seed)
    trainloader = DataLoader(
        TensorDataset(x, y), batch_size=BATCH_SIZE, shuffle=True, drop_last=True
    )
    testloader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
    net = ChequeNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=LEARNING_RATE)
    for epoch in range(EPOCHS):
        train_loss = train(net, trainloader, criterion, optimizer)
        val_loss, acc = test(net, testloader, criterion)
        print(f"Epoch {epoch + 1}: train {train_loss:.3f}, test {val_loss:.3f}, accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
