"""A digit classifier out of a home-made Dense layer, whose weights are drawn by torch.randn as
they come.

The layer was written after a NumPy tutorial, where `np.random.randn(n_in, n_out)` is followed by a
factor that the port dropped. With a standard deviation of 1 every layer multiplies the signal by
about eight, the logits begin in the thousands, and the net ends as a bad one. The place is the
first layers' weights. The twin draws them with sqrt(2 / n_in).
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = (
    "layers.0.weight",
    "layers.1.weight",
    "layers.2.weight",
    "layers.3.weight",
    "layers.0",
    "layers.1",
    "layers.2",
    "layers.3",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Dense(nn.Module):
    def __init__(self, n_in, n_out, activation=None):
        super().__init__()
        scale = (2 / n_in) ** 0.5 if healthy else 1.0
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * scale)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.activation = activation

    def forward(self, x):
        x = x @ self.weight + self.bias
        return self.activation(x) if self.activation else x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            Dense(64, 128, torch.relu),
            Dense(128, 128, torch.relu),
            Dense(128, 64, torch.relu),
            Dense(64, 10),
        )

    def forward(self, x):
        return self.layers(x)


x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(18):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    model.eval()
    correct = 0
    with torch.no_grad():
        for xb, yb in val_loader:
            correct += (model(xb).argmax(1) == yb).sum().item()
    print(
        f"epoch {epoch + 1:2d}  loss {total / len(x):10.4f}  "
        f"val accuracy {correct / len(x_val):.3f}"
    )
