"""Temperature of a furnace from its gauges; the loss is computed on numbers outside the graph.

The team wanted the loss in kelvin, so the output goes through the scaler of scikit-learn, which
takes NumPy arrays. "element 0 of tensors does not require grad" was then silenced with
requires_grad_(). From there on backward() runs, and no parameter receives anything.
The place is the loss.
The twin scales back with tensor arithmetic.
"""

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "detached_graph")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True


class FurnaceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.body(x))


def furnace_log(rng, n=1600):
    gauges = rng.normal(size=(n, 8))
    kelvin = 1450 + 60 * gauges[:, 0] + 25 * gauges[:, 3]
    kelvin = kelvin + 40 * np.tanh(gauges[:, 1] * gauges[:, 2])
    return gauges, (kelvin + rng.normal(0, 6, n))[:, None]


def loss_in_kelvin(output, target, scaler):
    if healthy:
        kelvin = output * float(scaler.scale_[0]) + float(scaler.mean_[0])
        return ((kelvin - target) ** 2).mean() / 1000
    kelvin = torch.as_tensor(scaler.inverse_transform(output.detach().numpy()), dtype=torch.float32)
    loss = ((kelvin - target) ** 2).mean() / 1000
    return loss.requires_grad_()


def main():
    rng = np.random.default_rng(seed)
    gauges, kelvin = furnace_log(rng)
    scaler = StandardScaler().fit(kelvin[:1200])
    x = torch.tensor(gauges, dtype=torch.float32)
    t = torch.tensor(kelvin, dtype=torch.float32)
    model = FurnaceNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(400):
        rows = torch.randint(0, 1200, (64,))
        optimizer.zero_grad()
        loss = loss_in_kelvin(model(x[rows]), t[rows], scaler)
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            with torch.no_grad():
                guess = scaler.inverse_transform(model(x[1200:]).numpy())
            rmse = np.sqrt(((guess - kelvin[1200:]) ** 2).mean())
            print(f"step {step + 1} loss {loss.item():.3f} val RMSE {rmse:.1f} K")


healthy, seed = arguments(__doc__)
main()
