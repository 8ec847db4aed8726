"""An echo state network on the Mackey-Glass series: a frozen, random recurrent net, of which only
the readout learns.

It looks odd because more than 95 % of the parameters are random and never trained, tanh is driven
hard, the states are detached, and the trainable share is one linear layer. That is the idea of
reservoir computing: the spectral radius is below one, the states are rich, and the readout
reaches a fraction of the error of "as it was".
"""

import torch
from data import arguments
from torch import nn

ODD = "more than 95 % of the parameters are random and never trained"
_, seed = arguments(__doc__)


def mackey_glass(n, tau=17, warm=300):
    x = [1.2 + 0.1 * torch.rand(()).item() for _ in range(tau + 1)]
    for _ in range(n + warm):
        delayed = x[-tau - 1]
        x.append(x[-1] + 0.2 * delayed / (1 + delayed**10) - 0.1 * x[-1])
    return torch.tensor(x[-n:])


class Reservoir(nn.Module):
    def __init__(self, size=250, radius=0.95, leak=0.5, density=0.08):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < density)
        w = w * (radius / torch.linalg.eigvals(w).abs().max())
        self.recurrent = nn.Parameter(w, requires_grad=False)
        self.inward = nn.Parameter(1.2 * (2 * torch.rand(size, 2) - 1), requires_grad=False)
        self.leak, self.size = leak, size

    @torch.no_grad()
    def forward(self, u):
        h, states = torch.zeros(self.size), []
        for value in u:
            drive = self.inward @ torch.stack([value, torch.ones(())]) + self.recurrent @ h
            h = (1 - self.leak) * h + self.leak * torch.tanh(drive)
            states.append(h)
        return torch.stack(states)


class EchoStateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.reservoir, self.readout = Reservoir(), nn.Linear(250, 1)

    def forward(self, states):
        return self.readout(states).squeeze(1)


HORIZON, WASHOUT = 6, 100
series = mackey_glass(3200)
series = (series - series[:2400].mean()) / series[:2400].std()
noisy = series + 0.01 * torch.randn(len(series))
net = EchoStateNet()
states = net.reservoir(noisy[:-HORIZON])[WASHOUT:]
target = series[HORIZON + WASHOUT :]
naive = noisy[WASHOUT:-HORIZON]
split = 2200
mean, std = states[:split].mean(0), states[:split].std(0)
states = (states - mean) / std
x, y, x_val, y_val = states[:split], target[:split], states[split:], target[split:]
print(f"error of 'as it was': {(naive[split:] - y_val).pow(2).mean():.4f}")

trainable = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trainable, lr=5e-3)
epochs = 60
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(epochs):
    net.train()
    for rows in torch.randperm(split).split(64)[:-1]:
        loss = (net(x[rows]) - y[rows]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    if epoch % 12 == 11:
        net.eval()
        with torch.no_grad():
            print(
                f"epoch {epoch + 1}: loss {loss.item():.5f}, val {(net(x_val) - y_val).pow(2).mean():.5f}"  # noqa: E501
            )
