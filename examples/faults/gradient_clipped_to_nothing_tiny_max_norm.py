"""Trains an LSTM on noisy waves with gradients clipped to a norm of 0.0001 before each step of SGD.

The limit was typed as if it were a tolerance. All steps have the length rate * 0.0001, whatever the
gradient is, so the weights hardly move and the loss stays near ln 3. The twin clips at 1. The place
is the optimizer or the loop.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MAX_NORM = 1.0 if healthy else 1e-4

x, y = waves(seed, n=2000, length=30)
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
x_val, y_val = x[1600:], y[1600:]


class LSTMClassifier(nn.Module):
    def __init__(self, hidden=32, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(4 * hidden, classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(torch.cat([out.mean(1), out.amax(1)], 1))


model = LSTMClassifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
criterion = nn.CrossEntropyLoss()


def train_one_epoch():
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        total += loss.item()
    return total / len(train_loader)


def validate():
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        return criterion(logits, y_val).item(), (logits.argmax(1) == y_val).float().mean().item()


for epoch in range(1, 10):
    train_loss = train_one_epoch()
    val_loss, acc = validate()
    print(f"epoch {epoch:2d} train {train_loss:.4f} val {val_loss:.4f} acc {acc:.3f}")
