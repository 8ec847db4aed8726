"""Handwritten digits for a parcel service; nine of ten units are dropped in training.

The old code was for TensorFlow 1 with keep_prob=0.9. In PyTorch the argument is the share to be
dropped, and 0.9 went over as it was. The network has hardly anything left to work with: training
loss and validation stay behind, and the former is worse than the latter.
The place is the dropout layers.
The twin drops one in ten.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("drop1", "drop2")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class ParcelNet(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.drop1 = nn.Dropout(p)
        self.fc2 = nn.Linear(128, 128)
        self.drop2 = nn.Dropout(p)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.drop1(F.relu(self.fc1(x)))
        x = self.drop2(F.relu(self.fc2(x)))
        return self.fc3(x)


x, y, x_val, y_val = digits(seed)
model = ParcelNet(p=0.1 if healthy else 0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
running = None
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=500, seed=seed), 1):
    model.train()
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = loss.item() if running is None else 0.97 * running + 0.03 * loss.item()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
        acc = (logits.argmax(1) == y_val).float().mean().item()
        print(f"{step} train {running:.3f} val {F.cross_entropy(logits, y_val):.3f} acc {acc:.3f}")
