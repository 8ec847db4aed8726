"""A one-dimensional CNN looks for two rare bearing faults in vibration signals without any
weighting.

95 % of the signals are normal, the two faults have 3 % and 2 %, and their traces are faint. The net
says "normal" nearly always: the accuracy looks good while the recall of the faults is close to
zero. The twin weights the classes in the loss by their inverse frequency. The place is the labels
or the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("label*", "classes*", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
AMPLITUDE = 0.7
SHARES = torch.tensor([0.95, 0.03, 0.02])


def record(n):
    label = torch.multinomial(SHARES, n, replacement=True)
    t = torch.arange(48.0)
    phase = torch.rand(n, 1) * 6.28
    slow = AMPLITUDE * torch.sin(t * 1.57 + phase)
    fast = AMPLITUDE * torch.sin(t * 2.6 + phase)
    clean = torch.stack([torch.zeros(n, 48), slow, fast])[label, torch.arange(n)]
    return (clean + torch.randn(n, 48)).unsqueeze(1), label


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 12, 9)
        self.conv2 = nn.Conv1d(12, 12, 5, stride=2)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        x = torch.relu(self.conv2(x))
        return self.head(x.mean(2))


def recalls(predicted, label):
    return [(predicted[label == c] == c).float().mean().item() for c in range(3)]


x_train, y_train = record(8000)
x_val, y_val = record(3000)
count = torch.bincount(y_train, minlength=3).float()
weight = len(y_train) / (3 * count) if healthy else None
criterion = nn.CrossEntropyLoss(weight=weight)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    per_class = recalls(out.argmax(1), y_val)
    print(
        f"epoch {epoch}: loss {total / len(loader):.4f} val {criterion(out, y_val):.4f} recall "
        + " ".join(f"{v:.2f}" for v in per_class)
        + f" mean {sum(per_class) / 3:.3f}"
    )
