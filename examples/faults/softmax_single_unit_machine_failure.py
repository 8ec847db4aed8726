"""A GRU foretells from a vibration signal whether a machine will fail: the code was made for
several classes, num_classes was set to 1, and softmax(dim=1) stayed in front of nn.BCELoss.

The softmax of one number is 1: every machine "fails", all gradients are 0, nothing is learned. The
place is the loss.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("loss*", "head*", "*softmax*")
SILENT = False
EXACT = True
EARLY = True


def vibrations(n, length=30):
    """Faulty bearings give a growing knock every six samples."""
    failing = (torch.rand(n) < 0.4).float()
    t = torch.arange(length)
    hum = torch.sin(0.9 * t + 6.28 * torch.rand(n, 1))
    knock = ((t + torch.randint(0, 6, (n, 1))) % 6 == 0) * (0.5 + t / 20)
    x = hum + failing.unsqueeze(1) * knock + 0.4 * torch.randn(n, length)
    return x, failing


class FailurePredictor(nn.Module):
    def __init__(self, num_classes=1, hidden_size=24, activation="softmax"):
        super().__init__()
        self.rnn = nn.GRU(1, hidden_size, num_layers=1, batch_first=True)
        self.head = nn.Linear(hidden_size, num_classes)
        self.activation = nn.Softmax(dim=1) if activation == "softmax" else nn.Sigmoid()

    def forward(self, x):
        _, h_n = self.rnn(x)
        return self.activation(self.head(h_n[-1]))


healthy, seed = arguments(__doc__)
x, y = vibrations(1200)
mean, std = x[:900].mean(), x[:900].std()
x = ((x - mean) / std).unsqueeze(-1)
model = FailurePredictor(activation="sigmoid" if healthy else "softmax")
loss_fn = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 360)

model.train()
history = []
for step, (signal, failing) in enumerate(
    batches(x[:900], y[:900], size=50, steps=360, seed=seed), start=1
):
    optimizer.zero_grad()
    probability = model(signal)
    loss = loss_fn(probability, failing.unsqueeze(1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    history.append(loss.item())
    if step % 36 == 0:
        model.eval()
        with torch.no_grad():
            p = model(x[900:]).squeeze(1)
            val_loss = loss_fn(p, y[900:]).item()
        model.train()
print(
    f"loss {sum(history[-36:]) / 36:.3f}, val loss {val_loss:.3f}, "
    f"val accuracy {((p > 0.5) == y[900:].bool()).float().mean():.3f}"
)
