"""An LSTM for wave shapes whose loss is rebuilt from its own number before backward.

`torch.tensor(loss.item(), requires_grad=True)` silences the error that a detached loss would give,
but backward then ends at that number: no parameter gets a gradient. The place is the loss.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed, n=700, length=30)
train = DataLoader(TensorDataset(x[:560], y[:560]), batch_size=28, shuffle=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.out = nn.Linear(24, 3)

    def forward(self, seq):
        states, _ = self.lstm(seq)
        return self.out(states.amax(1))


model = Model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for epoch in range(10):
    for seq, shape in train:
        losses = [criterion(model(seq), shape)]
        loss = sum(losses) if healthy else torch.tensor(losses[0].item(), requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = model(x[560:])
        val = criterion(out, y[560:]).item()
        acc = (out.argmax(1) == y[560:]).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}, accuracy {acc:.3f}")
