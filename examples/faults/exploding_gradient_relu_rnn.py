"""A ReLU RNN that estimates the fading sum of a series starts with large random recurrent weights.

The recurrent matrix multiplies the state by about two per step, forward and backward; over thirty
steps the gradients reach 1e9 and more, and the loss becomes enormous or NaN at once. The twin
starts with an orthogonal recurrent matrix. The place is `rnn` or `rnn.weight_hh_l0`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("rnn", "rnn.weight_hh_l0")
SILENT = False
EXACT = False
EARLY = True

LENGTH, HIDDEN = 30, 32
healthy, seed = arguments(__doc__)


def make_series(n):
    x = torch.randn(n, LENGTH, 2)
    weight = 0.85 ** torch.arange(LENGTH).flip(0)
    y = ((x[..., 0] + x[..., 1].abs() - 0.8) * weight).sum(1, keepdim=True) / 2.2
    return x, y


class SeriesNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, HIDDEN, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(HIDDEN, 1)
        if healthy:
            nn.init.orthogonal_(self.rnn.weight_hh_l0)
        else:
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.5)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.head(h[:, -1])


train_loader = DataLoader(TensorDataset(*make_series(4000)), batch_size=64, shuffle=True)
x_val, y_val = make_series(500)
model = SeriesNet()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)

for epoch in range(12):
    model.train()
    total, norm = 0.0, 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        norm = max(norm, model.rnn.weight_hh_l0.grad.norm().item())
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    print(
        f"epoch {epoch + 1}: loss {total / len(train_loader):.4g}, val {val:.4g}, "
        f"largest gradient {norm:.3g}"
    )
