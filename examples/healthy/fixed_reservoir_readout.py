"""An echo state network for a chaotic series: the recurrent part is random and stays so.

By design the reservoir (spectral radius 0.9) is not trained; its states are worked out once, and
a linear readout is fitted to them by gradient descent, with the reservoir's weights as buffers.
"""

import torch
from data import arguments
from torch import nn

ODD = "the large recurrent layer is random and never trained, as in any echo state network"


class Reservoir(nn.Module):
    def __init__(self, size, g):
        super().__init__()
        w = torch.randn(size, size, generator=g) * (torch.rand(size, size, generator=g) < 0.1)
        self.register_buffer("w", 0.9 * w / torch.linalg.eigvals(w).abs().max())
        self.register_buffer("w_in", torch.rand(size, 2, generator=g) - 0.5)

    @torch.no_grad()
    def forward(self, series):
        state, states = torch.zeros(len(self.w)), []
        for value in series:
            drive = self.w_in @ torch.stack([value, torch.ones(())])
            state = torch.tanh(self.w @ state + drive)
            states.append(state)
        return torch.stack(states)


def mackey_glass(n, g, delay=17):
    values = (1.2 + 0.1 * torch.randn(delay + 1, generator=g)).tolist()
    for _ in range(n + 200):
        old = values[-delay - 1]
        values.append(values[-1] + 0.2 * old / (1 + old**10) - 0.1 * values[-1])
    series = torch.tensor(values[-n:])
    return (series - 0.93) / 0.23


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
series = mackey_glass(2200, g)
states = Reservoir(150, g)(series[:-6])
target = series[6:]
states, target = states[100:], target[100:]
mean, std = states[:1500].mean(0), states[:1500].std(0)
states = (states - mean) / std
x, y, x_val, y_val = states[:1500], target[:1500], states[1500:], target[1500:]

readout = nn.Linear(150, 1)
opt = torch.optim.Adam(readout.parameters(), lr=1e-2)
fade = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 24)
for epoch in range(1, 25):
    for rows in torch.randperm(1500, generator=g).split(50):
        loss = nn.functional.mse_loss(readout(x[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    fade.step()
    if epoch % 4 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(readout(x_val).squeeze(1), y_val)
        print(f"epoch {epoch}: loss {loss.item():.4f} six steps ahead {val.item():.4f}")
