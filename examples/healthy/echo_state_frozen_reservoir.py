"""An echo state network that follows a chaotic circuit; only the readout is trained, on purpose.

The reservoir is random, sparse, scaled to a spectral radius of 0.9 and never trained: that is the
method (Jaeger 2001). Its weights are parameters with requires_grad=False, since they are saved with
the model. The readout has 200 weights of 40,000. It trains by gradient, since the device that it
runs on adapts online.
"""

import torch
from data import arguments
from torch import nn

ODD = "nearly all parameters are frozen at their random values; only a linear readout learns"

_, seed = arguments(__doc__)
STATES, WASHOUT = 200, 100


def circuit(length):
    """The x of a Mackey-Glass-like delay equation with measurement noise, standardised."""
    x = [1.2 + 0.2 * float(torch.rand(())) for _ in range(18)]
    for _ in range(length + 200):
        x.append(x[-1] + 0.2 * x[-18] / (1 + x[-18] ** 10) - 0.1 * x[-1])
    x = torch.tensor(x[-length:])
    x = (x - 0.93) / 0.23
    return x + 0.02 * torch.randn(length)


class EchoState(nn.Module):
    def __init__(self, ahead):
        super().__init__()
        sparse = torch.randn(STATES, STATES) * (torch.rand(STATES, STATES) < 0.1)
        radius = torch.linalg.eigvals(sparse).abs().max()
        self.recurrent = nn.Parameter(0.9 * sparse / radius, requires_grad=False)
        self.into = nn.Parameter(torch.rand(STATES) - 0.5, requires_grad=False)
        self.readout = nn.Linear(STATES, 1)
        self.ahead = ahead

    @torch.no_grad()
    def states(self, series):
        h, out = torch.zeros(STATES), []
        for x in series:
            h = 0.5 * h + 0.5 * torch.tanh(self.recurrent @ h + self.into * x)
            out.append(h)
        return torch.stack(out)

    def forward(self, states):
        return self.readout(states).squeeze(-1)

    def examples(self, series):
        """States after the washout, and what the circuit does `ahead` ticks later."""
        return self.states(series)[WASHOUT : -self.ahead], series[WASHOUT + self.ahead :]


net = EchoState(ahead=6)
series = circuit(4000)
(h, y), (h_val, y_val) = net.examples(series[:3000]), net.examples(series[3000:])
optimizer = torch.optim.Adam(net.readout.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
criterion = nn.MSELoss()

for step in range(1000):
    net.train()
    rows = torch.randint(0, len(h), (128,))
    loss = criterion(net(h[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        net.eval()
        with torch.no_grad():
            error = criterion(net(h_val), y_val).item()
        print(f"step {step + 1} loss {loss.item():.4f} val mse {error:.4f}")
still = criterion(y_val[:-6], y_val[6:]).item()
print(f"validation mse {error:.4f} (persistence: {still:.4f})")
