"""An LSTM that must keep the first symbol for 50 steps gets its forget bias in the input gate's
slice.

PyTorch orders the gates i, f, g, o; the code fills the first quarter. The forget gates stay at one
half, and 0.5 to the 50th leaves no gradient for the first step: the loss stays at that of guessing.
The place is the LSTM.
"""

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("lstm*", "inp*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, _ = arguments(__doc__)
LENGTH, SYMBOLS, HIDDEN = 50, 4, 32


class Rememberer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(SYMBOLS + 1, 16)
        self.lstm = nn.LSTM(16, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, SYMBOLS)
        gate = slice(HIDDEN, 2 * HIDDEN) if healthy else slice(0, HIDDEN)
        with torch.no_grad():
            self.lstm.bias_ih_l0.zero_()
            self.lstm.bias_hh_l0.zero_()
            self.lstm.bias_ih_l0[gate] = 4.0

    def forward(self, x):
        _, (h, _) = self.lstm(self.inp(x))
        return self.out(h[0])


def sample(n):
    symbol = torch.randint(SYMBOLS, (n,))
    x = torch.zeros(n, LENGTH, SYMBOLS + 1)
    x[torch.arange(n), 0, symbol] = 2.0
    x[:, 1:, SYMBOLS] = torch.randn(n, LENGTH - 1)
    return x, symbol


model = Rememberer()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
ce = nn.CrossEntropyLoss()
for step in range(1, 261):
    x, symbol = sample(64)
    optimizer.zero_grad()
    loss = ce(model(x), symbol)
    loss.backward()
    optimizer.step()
    if step % 52 == 0:
        model.eval()
        with torch.no_grad():
            x, symbol = sample(400)
            right = (model(x).argmax(1) == symbol).float().mean().item()
        model.train()
        print(f"step {step} loss {loss.item():.3f} remembered {right:.3f}")
