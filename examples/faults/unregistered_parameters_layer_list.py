"""A regression network for a wavy function keeps its hidden layers in a plain Python list.

nn.Module does not see layers in a list, so model.parameters() has only the input and output layer
and the optimizer never changes the hidden ones. The fit is poor. The twin uses nn.ModuleList. The
place is `hidden`, `` or the optimizer.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("hidden", "", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self, inputs, width=24, depth=3):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        layers = [nn.Linear(width, width) for _ in range(depth)]
        self.hidden = nn.ModuleList(layers) if healthy else layers
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)


def make_data(n):
    x = torch.rand(n, 3) * 2 - 1
    y = torch.sin(4 * x[:, :1]) * torch.cos(3 * x[:, 1:2]) + x[:, 2:] * x[:, :1]
    return x, y + 0.05 * torch.randn(n, 1)


x, y = make_data(5000)
x_val, y_val = make_data(1000)
x, x_val = standardise(x, x_val)
y, y_val = standardise(y, y_val)

model = Net(3)
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(1, 21):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 4 == 0:
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
        print(f"epoch {epoch}: train mse {total / len(loader):.4f}, val mse {val:.4f}")
