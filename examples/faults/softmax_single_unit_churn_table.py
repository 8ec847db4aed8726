"""A network predicts whether a customer leaves; its single output unit ends in a softmax.

"Softmax is for classification", so the writer puts nn.Softmax(dim=1) behind one unit: the output
is always 1, the gradients are zero and nothing is learnt. The place is the last activation
(net.5) and the unit before it.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("net.5", "net.4*", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

# customers of a phone company
rng = np.random.default_rng(seed)
n = 2400
months = rng.gamma(2.0, 14.0, n)
price = rng.normal(38, 12, n)
calls = rng.poisson(1.8, n)
data_use = rng.lognormal(1.2, 0.7, n)
contract = rng.integers(0, 2, n)
age = rng.uniform(18, 80, n)
logit = 0.06 * (price - 38) + 0.7 * (calls - 1.8) - 0.05 * (months - 28) - 1.4 * contract
logit += 0.9 * np.sin(age / 12) + 0.25 * (data_use - 4) * (1 - contract)
left = (rng.random(n) < 1 / (1 + np.exp(-1.5 * logit))).astype("float32")

x = torch.tensor(np.stack([months, price, calls, data_use, contract, age], 1), dtype=torch.float32)
y = torch.tensor(left).unsqueeze(1)
x_train, x_val = standardise(x[:1800], x[1800:])
y_train, y_val = y[:1800], y[1800:]
print("share of leavers:", y_train.mean().item())


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, 24),
            nn.Tanh(),
            nn.Linear(24, 12),
            nn.Tanh(),
            nn.Linear(12, 1),
            nn.Sigmoid() if healthy else nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.net(x)


model = ChurnNet()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=36, shuffle=True)

for epoch in range(30):
    model.train()
    losses = []
    for xb, yb in train_loader:
        prob = model(xb)
        loss = criterion(prob, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        prob = model(x_val)
        val_loss = criterion(prob, y_val).item()
        acc = ((prob > 0.5).float() == y_val).float().mean().item()
    if (epoch + 1) % 3 == 0:
        print(
            f"epoch {epoch + 1}: loss {np.mean(losses):.4f} "
            f"val_loss {val_loss:.4f} val_acc {acc:.4f}"
        )
