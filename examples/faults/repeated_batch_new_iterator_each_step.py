"""What a person is doing, from a wrist accelerometer, by a GRU; the loop counts steps, not epochs.

`for step in range(STEPS): batch = next(iter(loader))` makes a new iterator each time, and the
loader is not shuffled "because it is a time series" (the windows were shuffled when they were
cut). The net sees the first 32 windows 400 times. The place is the loop / the data. The twin keeps
one iterator and renews it when it ends.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loop", "data", "input")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ACTIVITIES = ("sitting", "walking", "running", "stairs", "cycling")


def recordings(n, length=50):
    """Three axes at 25 Hz.

    Each activity has a cadence, a vigour and a tilt that overlap with others'.
    """
    y = torch.randint(0, len(ACTIVITIES), (n,))
    cadence = torch.tensor([0.0, 1.8, 2.7, 1.6, 1.3])[y] + 0.12 * torch.randn(n)
    vigour = torch.tensor([0.05, 0.6, 1.3, 0.7, 0.5])[y] * torch.exp(0.25 * torch.randn(n))
    lift = torch.tensor([0.0, 0.1, 0.2, 0.5, 0.0])[y] + 0.1 * torch.randn(n)
    t = torch.arange(length) / 25
    swing = torch.sin(6.283 * (cadence[:, None] * t + torch.rand(n, 1))) * vigour[:, None]
    bounce = torch.sin(12.566 * (cadence[:, None] * t + torch.rand(n, 1))) * vigour[:, None] * 0.5
    tilt = lift[:, None] + 0.5 * swing * bounce
    x = torch.stack([swing, bounce, tilt], 2) + 0.25 * torch.randn(n, length, 3)
    return x, y


class ActivityGRU(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, len(ACTIVITIES))

    def forward(self, x):
        h, _ = self.gru(x)
        return self.head(torch.cat([h.mean(1), h.amax(1)], 1))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y).item()
    return loss, (logits.argmax(1) == y).float().mean().item()


x, y = recordings(1600)
x_val, y_val = recordings(500)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=False, drop_last=True)
model = ActivityGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

STEPS, EVAL_EVERY = 400, 40
stream = iter(loader)
for step in range(1, STEPS + 1):
    model.train()
    if healthy:
        batch = next(stream, None)
        if batch is None:
            stream = iter(loader)
            batch = next(stream)
    else:
        batch = next(iter(loader))
    inputs, targets = batch
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % EVAL_EVERY == 0:
        val_loss, val_acc = evaluate(model, x_val, y_val)
        print(
            f"step {step:3d} loss {loss.item():.4f} val loss {val_loss:.4f} "
            f"val accuracy {val_acc:.3f}"
        )
