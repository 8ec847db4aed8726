"""A plain RNN with ReLU sums the marked values of a signal over 60 steps, and its gradients
explode.

The user scaled the recurrent matrix by 1.8 ("stronger memory"): its spectral radius above 1 makes
states and gradients grow step by step, and nothing clips them. The place is rnn.weight_hh_l0.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("rnn*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def make(n, g):
    """Events of +1 and -1, of which the marked ones are to be summed."""
    value = torch.randn(n, 60, generator=g) * 0.5
    mark = (torch.rand(n, 60, generator=g) < 0.1).float()
    y = (value * mark).sum(1)
    return torch.stack([value, mark], 2), y / y.std()


class Adder(nn.Module):
    def __init__(self, width=32, gain=1.0):
        super().__init__()
        self.rnn = nn.RNN(2, width, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(width, 1)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=gain)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = make(3000, g)
x_val, y_val = make(600, g)
model = Adder(gain=1.0 if healthy else 1.8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1500):
    rows = torch.randint(0, len(x), (50,), generator=g)
    loss = (model(x[rows]) - y[rows]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 100 == 0:
        with torch.no_grad():
            val = (model(x_val) - y_val).square().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4g}, validation mse {val:.4g}")
