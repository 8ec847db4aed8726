"""A 1-D CNN on waves whose rows are standardised one by one; a few rows are constant.

Each recording is divided by its own standard deviation. A few sensors were unplugged and gave
zeros all along, so their deviation is 0 and 0 / 0 is NaN, which one backward pass spreads to all
weights. The place is the division, in the model's normalise(), on the input. The twin adds an
epsilon.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("input*",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y = waves(seed)
dead = torch.randperm(600)[:4]
x[dead] = 0.0
loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=24, shuffle=True)
x_val, y_val = x[600:], y[600:]


class WaveCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = 1e-5 if healthy else 0.0
        self.convs = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(4),
        )
        self.head = nn.Linear(128, 3)

    def normalise(self, x):
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        return (x - mean) / (std + self.eps)

    def forward(self, x):
        x = self.normalise(x).transpose(1, 2)
        return self.head(self.convs(x).flatten(1))


model = WaveCNN()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}  val accuracy {accuracy:.3f}")
