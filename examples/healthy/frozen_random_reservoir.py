"""An echo state network: a random recurrent layer that is never trained, and a linear readout
that is.

It looks odd because most parameters are random and frozen and the forward pass of the recurrent
layer runs without a graph. It is sound: that is what a reservoir is; its spectral radius is 0.9,
and the readout alone learns the series.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the recurrent layer is random and never learns: an echo state network trains its readout"
_, seed = arguments(__doc__)


def mackey_glass(n, tau=17, warm=200):
    values = [1.2 + 0.05 * torch.randn(1).item() for _ in range(tau + 1)]
    for _ in range(n + warm):
        delayed = values[-tau - 1]
        values.append(values[-1] + 0.2 * delayed / (1 + delayed**10) - 0.1 * values[-1])
    return torch.tensor(values[-n:])


class Reservoir(nn.Module):
    def __init__(self, size=150):
        super().__init__()
        self.rnn = nn.RNN(1, size, batch_first=True)
        self.readout = nn.Linear(size, 1)
        for p in self.rnn.parameters():
            p.requires_grad_(False)
        w = torch.randn(size, size)
        self.rnn.weight_hh_l0.copy_(0.9 * w / torch.linalg.eigvals(w).abs().max())
        self.rnn.weight_ih_l0.uniform_(-0.5, 0.5)

    def forward(self, x):
        with torch.no_grad():
            states, _ = self.rnn(x)
        return self.readout(states[:, 20:])


series = mackey_glass(6600)
series = series + 0.01 * torch.randn_like(series)
series = (series - series[:5000].mean()) / series[:5000].std()
AHEAD, LENGTH = 5, 60
EPOCHS = 45
starts = torch.arange(0, len(series) - LENGTH - AHEAD, 10)
x = torch.stack([series[s : s + LENGTH] for s in starts]).unsqueeze(2)
y = torch.stack([series[s + 20 + AHEAD : s + LENGTH + AHEAD] for s in starts]).unsqueeze(2)
n_train = int((starts < 5000 - LENGTH - AHEAD).sum())
n_val = int((starts < 5000).sum())
train_loader = DataLoader(TensorDataset(x[:n_train], y[:n_train]), batch_size=20, shuffle=True)
x_val, y_val = x[n_val:], y[n_val:]

model = Reservoir()
criterion = nn.MSELoss()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trained, lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
print("trained:", sum(p.numel() for p in trained), "of", sum(p.numel() for p in model.parameters()))

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {total / len(train_loader):.4f} val {val:.4f}")
