"""Stock level at the end of a long list of movements, by a plain ReLU RNN without clipping.

A recurrent net over a hundred steps multiplies its gradient by the same matrix again and again.
The tutorial it comes from had short sequences, for which nobody needs to bound the gradient; with
the long ones it is now and then a thousand times larger than usual, and a step of SGD throws the
weights far away.
The place is the recurrent layer.
The twin clips the norm of the gradient to 1.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("loss_spike", "learning_rate_too_high")
PLACE = ("rnn", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH = 100


def movements(n, g):
    """What comes into a warehouse and what leaves it, day by day, and the level in the end."""
    flows = torch.rand(n, LENGTH, 2, generator=g)
    level = (flows[:, :, 0] - flows[:, :, 1]).sum(1) / 4
    return flows, level + 0.1 * torch.randn(n, generator=g)


class StockRNN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden, 1)
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.1)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1]).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = movements(1600, g)
x_val, y_val = movements(300, g)
model = StockRNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9)
mse = nn.MSELoss()

step = 0
for epoch in range(8):
    for rows in torch.randperm(len(x)).split(32):
        loss = mse(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        if healthy:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
    with torch.no_grad():
        val = mse(model(x_val), y_val).item()
    print(f"epoch {epoch} step {step} train {loss.item():.4g} val {val:.4g}")
