"""Depth of sleep from few nights of heart rates; the best network is the last one by another name.

`best_model = model` was to put the best network aside. It is the same object, which goes on being
trained, and learns the few nights by heart. What is tested in the end is the last epoch.
The place is the loop. The twin keeps a deep copy.
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
STAGES = ("awake", "light", "deep", "dream")


def nights(n, g):
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(30.0)
    rate = torch.tensor([0.8, 0.1, -0.8, 0.2])[y].unsqueeze(1)
    sway = torch.tensor([0.6, 0.3, 0.1, 0.8])[y].unsqueeze(1)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    x = rate + 0.7 * torch.randn(n, 1, generator=g) + sway * torch.sin(0.9 * t + phase)
    return x + 0.5 * torch.randn(n, 30, generator=g), y


class SleepNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(480, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.head(self.conv(x.unsqueeze(1)))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    model.train()
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(seed)
x, y = nights(480, g)
x_val, y_val = nights(300, g)
x_test, y_test = nights(600, g)
model = SleepNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
best_loss, best_model = float("inf"), None
for epoch in range(16):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, generator=g):
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(model, x_val, y_val)
    if val_loss < best_loss:
        best_loss = val_loss
        best_model = copy.deepcopy(model) if healthy else model
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f} val {val_loss:.3f} acc {accuracy:.3f}")
test_loss, test_accuracy = evaluate(best_model, x_test, y_test)
print(f"best validation {best_loss:.3f}, test of the kept {test_loss:.3f} {test_accuracy:.3f}")
