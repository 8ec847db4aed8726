"""A hand-written recurrent cell holds its weights as plain tensors with requires_grad=True, not as
nn.Parameter.

Such tensors are not in model.parameters(), so the optimizer trains only the output layer on top of
a random recurrence; their gradients grow and are never used. The twin wraps them in nn.Parameter.
The place is `cell`, `cell.w_in`, `cell.w_rec`, `cell.bias` or the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("cell", "cell.w_in", "cell.w_rec", "cell.bias", "optimizer")
SILENT = True
EXACT = True
EARLY = True

HIDDEN, LENGTH = 16, 12
healthy, seed = arguments(__doc__)


def weights(*shape):
    w = torch.randn(*shape) * shape[0] ** -0.5
    return nn.Parameter(w) if healthy else w.requires_grad_()


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.w_in = weights(inputs, hidden)
        self.w_rec = weights(hidden, hidden)
        self.bias = (
            nn.Parameter(torch.zeros(hidden))
            if healthy
            else torch.zeros(hidden, requires_grad=True)
        )

    def forward(self, x, h):
        return torch.tanh(x @ self.w_in + h @ self.w_rec + self.bias)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell(2, HIDDEN)
        self.out = nn.Linear(HIDDEN, 3)

    def forward(self, x):
        h = x.new_zeros(len(x), HIDDEN)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.out(h)


def make_data(n):
    """Noisy ones and zeros as one-hot pairs; the class groups the ones in the last eight."""
    bits = torch.randint(0, 2, (n, LENGTH))
    count = bits[:, -8:].sum(1)
    y = (count > 3).long() + (count > 4).long()
    return F.one_hot(bits, 2) - 0.5 + 0.1 * torch.randn(n, LENGTH, 2), y


x, y = make_data(4000)
x_val, y_val = make_data(1000)
model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
steps = 800
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=steps, seed=seed), start=1):
    model.train()
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"step {step}: loss {loss.item():.3f}, val {F.cross_entropy(out, y_val):.3f}, "
            f"acc {acc:.3f}"
        )
