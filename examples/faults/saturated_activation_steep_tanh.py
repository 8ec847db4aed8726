"""A tanh network with a "slope" learns Friedman's function; the slope of 40 drives all hidden
units to -1 or 1.

The writer wanted "sharper" units and multiplies the pre-activations by 40. Almost all outputs of
the tanh are at their ends, where the derivative is zero. The place is the activations (act1,
act2) and the layers before them.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient", "poor_weight_init")
PLACE = ("act1", "act2", "fc1*", "fc2*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SLOPE = 1.0 if healthy else 40.0

X, Y = make_friedman1(n_samples=2000, n_features=8, noise=1.0, random_state=seed)
x = torch.tensor(X, dtype=torch.float32)
y = torch.tensor(Y, dtype=torch.float32).view(-1, 1)
x_train, x_val = standardise(x[:1500], x[1500:])
y_train, y_val = standardise(y[:1500], y[1500:])


class SteepTanh(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.tanh(self.slope * x)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 48)
        self.act1 = SteepTanh(SLOPE)
        self.fc2 = nn.Linear(48, 48)
        self.act2 = SteepTanh(SLOPE)
        self.fc3 = nn.Linear(48, 1)

    def forward(self, x):
        x = self.act1(self.fc1(x))
        x = self.act2(self.fc2(x))
        return self.fc3(x)


model = Regressor()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=250)

for epoch in range(40):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb)
    train_loss /= len(x_train)

    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            val_loss += criterion(model(xb), yb).item() * len(xb)
    val_loss /= len(x_val)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:3d}   train {train_loss:.4f}   val {val_loss:.4f}")
