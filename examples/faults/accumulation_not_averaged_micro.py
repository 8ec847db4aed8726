"""A residual net on digits takes its batch of 256 in micro-batches of 16 to save memory. The loss
that is printed is divided by their number; the loss that is sent backwards is not.

The gradient is sixteen times that of the batch, and SGD with momentum and a rate found for the
whole batch goes sixteen times too far, until nothing is finite. The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F

KIND = "accumulation_not_averaged"
ACCEPT = ()
PLACE = ("loop", "loss")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.relu(self.a(self.norm(x))))


def micro_batched(model, x, y, size):
    chunks = list(zip(x.split(size), y.split(size), strict=False))
    shown = 0.0
    for a, b in chunks:
        loss = F.cross_entropy(model(a), b)
        if healthy:
            (loss / len(chunks)).backward()
        else:
            loss.backward()
        shown += loss.item() / len(chunks)
    return shown


x, y, x_val, y_val = digits(seed)
x, y = x[:1280], y[:1280]
model = nn.Sequential(
    nn.Linear(64, 64), Residual(64), Residual(64), nn.LayerNorm(64), nn.Linear(64, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.04, momentum=0.9, nesterov=True)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(256):
        optimizer.zero_grad(set_to_none=True)
        shown = micro_batched(model, x[rows], y[rows], 16)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch}: train {shown:.3f} val {F.cross_entropy(out, y_val).item():.3f}"
        f" accuracy {accuracy.item():.3f}"
    )
