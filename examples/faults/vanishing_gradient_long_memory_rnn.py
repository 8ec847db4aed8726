"""A plain tanh RNN must name the first symbol of a sequence after forty further steps of noise.

The gradient to the first steps shrinks with each step back through the recurrent matrix, so the
network never learns to keep the symbol and stays at chance. The twin uses an LSTM whose forget
gates start open. The place is `rnn`.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("rnn",)
SILENT = False
EXACT = False
EARLY = True

SYMBOLS, LENGTH, BATCH, STEPS = 4, 40, 64, 400
healthy, seed = arguments(__doc__)


def sample(n):
    """First a symbol (one-hot), then noise on all channels."""
    y = torch.randint(0, SYMBOLS, (n,))
    x = 0.3 * torch.randn(n, LENGTH, SYMBOLS)
    x[:, 0] = F.one_hot(y, SYMBOLS).float() * 2
    return x, y


class Memory(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        if healthy:
            self.rnn = nn.LSTM(SYMBOLS, hidden, batch_first=True)
            self.rnn.bias_hh_l0.data[hidden : 2 * hidden] = 3.0  # forget gates open
        else:
            self.rnn = nn.RNN(SYMBOLS, hidden, batch_first=True)
        self.out = nn.Linear(hidden, SYMBOLS)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


model = Memory()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
x_val, y_val = sample(500)
recent = []
for step in range(1, STEPS + 1):
    model.train()
    x, y = sample(BATCH)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    recent.append(loss.item())
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step}: loss {sum(recent[-50:]) / 50:.4f}, "
            f"val {F.cross_entropy(out, y_val):.4f}, acc {acc:.3f}"
        )
