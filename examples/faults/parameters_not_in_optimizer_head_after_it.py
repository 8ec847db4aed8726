"""A network learns ten digits' parity first, then gets a new head for all ten digits.

The head is replaced after the optimizer for the second part was made, so the optimizer still holds
the old head. The body learns, and the loss falls, through a head that stays random.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("head*", "optimizer")
SILENT = True
EXACT = True
EARLY = False


class DigitMLP(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 32), nn.GELU())
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.head(self.body(x))


def make_optimizer(model, lr):
    return torch.optim.AdamW(model.parameters(), lr=lr)


def train(model, optimizer, loader, epochs):
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = DigitMLP(n_classes=2)
parity = DataLoader(TensorDataset(x, y % 2), batch_size=64, shuffle=True)
train(model, make_optimizer(model, lr=2e-3), parity, epochs=4)

all_ten = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
if healthy:
    model.head = nn.Linear(32, 10)
    optimizer = make_optimizer(model, lr=2e-3)
else:
    optimizer = make_optimizer(model, lr=2e-3)
    model.head = nn.Linear(32, 10)
loss = train(model, optimizer, all_ten, epochs=10)
model.eval()
with torch.no_grad():
    out = model(x_val)
val_loss = F.cross_entropy(out, y_val).item()
accuracy = (out.argmax(1) == y_val).float().mean().item()
print(f"loss {loss:.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
