"""Windows of a vibration sensor that were clipped are left out, but their labels are not.

zip() pairs the windows that are left with the first labels of the whole list: from the first
clipped window on every label is another's. The twin leaves the labels out too. The place is the
loader.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input")
SILENT = False
EXACT = False
EARLY = False

STATES = ("smooth", "unbalanced", "worn bearing", "loose bolt")


def record(n, length=64):
    t = torch.arange(length) / length * 6.2832
    windows, states = [], []
    for _ in range(n):
        state = int(torch.randint(0, len(STATES), ()))
        phase, speed = torch.rand(()) * 6.28, 3 + torch.rand(())
        w = torch.sin(speed * t + phase)
        if state == 1:
            w = w + 0.9 * torch.sin(2 * speed * t + phase)
        elif state == 2:
            w = w + 0.8 * torch.sin(9 * speed * t + torch.rand(()) * 6.28)
        elif state == 3:
            w = w.clamp(max=0.2) * 1.3
        w = w + 0.3 * torch.randn(length)
        if torch.rand(()) < 0.12:
            w = (4 * w).clamp(-3, 3)
        windows.append(w)
        states.append(state)
    return windows, states


healthy, seed = arguments(__doc__)
windows, states = record(2400)
usable = [bool(w.abs().max() < 3) for w in windows]
clean = [w for w, ok in zip(windows, usable, strict=False) if ok]
if healthy:
    states = [s for s, ok in zip(states, usable, strict=False) if ok]
examples = [(w.unsqueeze(0), s) for w, s in zip(clean, states, strict=False)]
cut = int(0.8 * len(examples))
train_loader = DataLoader(examples[:cut], batch_size=32, shuffle=True)
test_loader = DataLoader(examples[cut:], batch_size=128)

model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
    nn.Conv1d(16, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.AdaptiveAvgPool1d(4),
    nn.Flatten(), nn.Linear(96, len(STATES)),
)  # fmt: skip
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    model.train()
    total = 0.0
    for w, s in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(w), s)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(s)
    model.eval()
    with torch.no_grad():
        right = sum((model(w).argmax(1) == s).sum().item() for w, s in test_loader)
    print(f"[{epoch}] loss {total / cut:.3f}  test accuracy {right / (len(examples) - cut):.3f}")
