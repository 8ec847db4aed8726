"""Digits with a small network and plain SGD; early stopping watches the accuracy, and its mode is
still "min" from when it watched the loss.

Every better accuracy is a worse one for it: after the patience of 5 epochs training ends while the
loss still falls steadily. The loss falls all the same. The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, mode="min", patience=5):
        self.sign = 1 if mode == "min" else -1
        self.patience, self.best, self.count = patience, None, 0

    def should_stop(self, value):
        value = self.sign * value
        if self.best is None or value < self.best:
            self.best, self.count = value, 0
        else:
            self.count += 1
        return self.count >= self.patience


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 48)
        self.classifier = nn.Linear(48, 10)

    def forward(self, pixels):
        return self.classifier(torch.tanh(self.hidden(pixels)))


x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
stopper = EarlyStopping(mode="max" if healthy else "min")

for epoch in range(40):
    model.train()
    running = 0.0
    for pixels, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = (logits.argmax(1) == y_val).float().mean().item()
    val_loss = criterion(logits, y_val).item()
    print(
        f"epoch {epoch} train {running / len(train_loader):.3f} val {val_loss:.3f} "
        f"accuracy {accuracy:.3f}"
    )
    if stopper.should_stop(accuracy):
        print(f"early stop after epoch {epoch} accuracy {accuracy:.3f} val {val_loss:.3f}")
        break
