"""A GRU on waves whose batches are brought to (time, batch, feature) by view().

nn.GRU wants time first by default. `x.view(time, batch, feature)` gives the right shape and the
wrong order: each sequence is put together from pieces of several recordings. The place is the
input of the GRU. The twin says x.transpose(0, 1).
"""

import torch
from data import arguments, batches, waves
from torch import nn

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("gru", "input*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x, y, x_val, y_val = x[:600], y[:600], x[600:], y[600:]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32)
        self.head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        n, t, f = x.shape
        x = x.transpose(0, 1) if healthy else x.reshape(t, n, f)
        out, _ = self.gru(x)
        return self.head(out.mean(0))


net = Recurrent()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=240, seed=seed), 1):
    optimizer.zero_grad()
    loss = criterion(net(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 24 == 0:
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        net.train()
        print(f"step {step}: loss {loss.item():.3f}  val accuracy {accuracy:.3f}")
