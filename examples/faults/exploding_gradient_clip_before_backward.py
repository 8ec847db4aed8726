"""A recurrent ReLU net tells steps, runs and stairs apart; clip_grad_norm_ is called before
backward(), on nothing.

The net starts from the identity (IRNN), and over 60 moments the gradient grows without bounds; the
clipping stands after zero_grad(), where there are no gradients. The place is the recurrent layer.
The loss leaps up whenever it has fallen a little (not silent). Not exact.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "dead_relu")
PLACE = ("rnn*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, KINDS = 60, 4


def recordings(n, g):
    """Three axes of a wrist: pace, strength and the share of the second harmonic tell the kind."""
    y = torch.randint(0, KINDS, (n,), generator=g)
    pace = torch.tensor([0.25, 0.5, 0.25, 0.0])[y] * (1 + 0.1 * torch.randn(n, generator=g))
    second = torch.tensor([0.2, 0.3, 1.0, 0.0])[y]
    t = torch.arange(float(LENGTH))
    phase = 6.283 * torch.rand(n, 1, generator=g)
    angle = pace[:, None] * t + phase
    swing = angle.sin() + second[:, None] * (2 * angle + 0.5).sin()
    tilt = torch.randn(n, 1, 3, generator=g) * 0.3
    axes = torch.stack([swing, 0.6 * swing.roll(2, 1), 0.4 * angle.cos()], 2)
    return axes + tilt + 0.2 * torch.randn(n, LENGTH, 3, generator=g), y


class WristNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.rnn = nn.RNN(3, width, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(width, KINDS)
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


g = torch.Generator().manual_seed(seed)
x, y = recordings(1500, g)
x_val, y_val = recordings(400, g)
model = WristNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 13)
for epoch in range(13):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(50):
        optimizer.zero_grad()
        if not healthy:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        if healthy:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {total:.4g}, held-out accuracy {right:.3f}")
