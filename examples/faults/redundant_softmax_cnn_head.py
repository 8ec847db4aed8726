"""A small CNN on handwritten digits ends in nn.Softmax, and is trained with nn.CrossEntropyLoss.

CrossEntropyLoss takes the log-softmax itself, so it sees probabilities as if they were logits. The
loss cannot fall below about 1.46 for ten classes and the gradients are small, so training is slow.
The twin's network ends in the linear layer. The place is `softmax`, the loss or `fc2`.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("softmax", "loss*", "fc2")
SILENT = True
EXACT = True
EARLY = True

EPOCHS = 20
healthy, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 4, 64)
        self.fc2 = nn.Linear(64, 10)
        self.softmax = nn.Identity() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.softmax(self.fc2(x))


def evaluate(model, loader, criterion):
    model.eval()
    loss = right = count = 0
    with torch.no_grad():
        for xb, yb in loader:
            out = model(xb)
            loss += criterion(out, yb).item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
            count += len(yb)
    return loss / count, right / count


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    scheduler.step()
    if epoch % 4 == 3:
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        print(
            f"epoch {epoch + 1}: train {total / len(x):.3f}, val {val_loss:.3f}, acc {val_acc:.3f}"
        )
