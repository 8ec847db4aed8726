"""A GRU that foretells a noisy oscillation, trained by SGD with a rate of 1e-5.

The gradients are fine and the loss falls steadily, by a hair: at this rate the training would need
hundreds of thousands of steps. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "")
SILENT = False
EXACT = False
EARLY = True

WINDOW = 20


def oscillation(n):
    t = torch.arange(n) * 0.2
    signal = t.sin() + 0.5 * (2.3 * t).cos() + 0.1 * torch.randn(n)
    signal = (signal - signal.mean()) / signal.std()
    windows = signal.unfold(0, WINDOW + 1, 1)
    return windows[:, :-1].unsqueeze(-1), windows[:, -1:]


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.linear(out[:, -1])


healthy, seed = arguments(__doc__)
x, y = oscillation(2000)
x_train, y_train, x_test, y_test = x[:1500], y[:1500], x[1520:], y[1520:]
model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 if healthy else 1e-5, momentum=0.9)
batch_size = 50
for epoch in range(10):
    order = torch.randperm(len(x_train))
    for i in range(0, len(order), batch_size):
        chosen = order[i : i + batch_size]
        optimizer.zero_grad()
        loss = criterion(model(x_train[chosen]), y_train[chosen])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    with torch.no_grad():
        test_loss = criterion(model(x_test), y_test)
print(f"loss {loss.item():.3f}, test {test_loss.item():.3f}")
