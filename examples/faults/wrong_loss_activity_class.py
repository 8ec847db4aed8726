"""An LSTM names one of six activities from an accelerometer, but learns the number of the class
by mean squared error.

The classes have no order; the network is trained to give the number 0 to 5 itself (one output),
rounded for the accuracy. It gives values in the middle where it isn't sure. The place is the
loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ("loss_target_mismatch",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
ACTIVITIES = ("walking", "lying", "running", "standing", "cycling", "stairs")
#        speed  force  gravity on the three axes  regularity
LOOKS = (
    (0.6, 0.7, 0.1, 0.9, 0.2),
    (0.2, 0.08, 0.9, 0.1, 0.2),
    (1.0, 1.5, 0.1, 0.9, 0.3),
    (0.2, 0.08, 0.0, 1.0, 0.1),
    (0.8, 0.4, 0.3, 0.7, 0.5),
    (0.5, 0.8, 0.2, 0.85, 0.4),
)


def records(n, g):
    y = torch.randint(0, 6, (n,), generator=g)
    look = torch.tensor(LOOKS)[y]
    t = torch.arange(40.0)
    speed = look[:, :1] * (1 + 0.1 * torch.randn(n, 1, generator=g))
    force = look[:, 1:2] * torch.exp(0.2 * torch.randn(n, 1, generator=g))
    phase = 6.28 * torch.rand(n, 1, generator=g)
    swing = force * torch.stack(
        [
            torch.sin(speed * t + phase),
            torch.sin(2 * speed * t + phase),
            torch.cos(speed * t + phase),
        ]
    )
    lean = look[:, 2:] + 0.12 * torch.randn(n, 3, generator=g)
    x = swing.permute(1, 2, 0) + lean.unsqueeze(1) + 0.25 * torch.randn(n, 40, 3, generator=g)
    return x, y


class Activity(nn.Module):
    def __init__(self, outputs, width=48):
        super().__init__()
        self.read = nn.LSTM(3, width, batch_first=True)
        self.say = nn.Linear(width, outputs)

    def forward(self, x):
        return self.say(self.read(x)[0].mean(1))


class Trainer:
    def __init__(self):
        self.model = Activity(6 if healthy else 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)

    def loss(self, out, y):
        return F.cross_entropy(out, y) if healthy else F.mse_loss(out.squeeze(1), y.float())

    def names(self, out):
        return out.argmax(1) if healthy else out.squeeze(1).round().clamp(0, 5).long()

    def fit(self, train, val, epochs):
        x, y = train
        for epoch in range(epochs):
            self.model.train()
            for rows in torch.randperm(len(x)).split(50):
                loss = self.loss(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                out = self.model(val[0])
                hit = (self.names(out) == val[1]).float().mean().item()
            val_loss = self.loss(out, val[1]).item()
            print(
                f"epoch {epoch} loss {loss.item():.4f} val loss {val_loss:.4f} accuracy {hit:.3f}"
            )


g = torch.Generator().manual_seed(seed)
Trainer().fit(records(2000, g), records(500, g), 8)
