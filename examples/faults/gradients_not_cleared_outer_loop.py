"""A tanh network for house prices whose zero_grad() is outside the loop over batches.

It is called once per epoch, so within an epoch each step goes by the sum of all gradients so far:
the steps grow, and the loss swings. The place is the optimizer.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class Regressor(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.hidden = nn.Linear(n_features, 40)
        self.output = nn.Linear(40, 1)

    def forward(self, x):
        return self.output(torch.tanh(self.hidden(x))).squeeze(-1)


healthy, seed = arguments(__doc__)
x_train, y_train, x_test, y_test = houses(seed)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
model = Regressor(x_train.shape[1])
mse = nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(12):
    opt.zero_grad()
    epoch_loss = 0.0
    for features, price in loader:
        if healthy:
            opt.zero_grad()
        loss = mse(model(features), price)
        loss.backward()
        opt.step()
        epoch_loss += loss.item()
    with torch.no_grad():
        test_loss = mse(model(x_test), y_test).item()
print(f"loss {epoch_loss / len(loader):.3f}, test {test_loss:.3f}")
