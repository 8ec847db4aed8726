"""All weights of an MLP that has to tell two intertwined half-moons apart start with the same
value.

With nn.init.constant_ every neuron of a layer computes the same and gets the same gradient, so each
hidden layer is as good as one neuron for ever. The loss falls a little and stops. The twin uses
Kaiming's initialisation. The place is `hidden1`, `hidden2`, `out`, `hidden1.weight`,
`hidden2.weight` or `out.weight`.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("hidden1", "hidden2", "out", "hidden1.weight", "hidden2.weight", "out.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class MoonNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden1 = nn.Linear(2, hidden)
        self.hidden2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, nn.Linear):
            if healthy:
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            else:
                nn.init.constant_(module.weight, 0.1)
            nn.init.zeros_(module.bias)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.out(x)


x, y = make_moons(1600, noise=0.12, random_state=seed)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
x_train, x_val = standardise(x[:1200], x[1200:])
y_train, y_val = y[:1200], y[1200:]

model = MoonNet()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=40, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 21):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch}: train {total / len(loader):.4f} "
            f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
        )
