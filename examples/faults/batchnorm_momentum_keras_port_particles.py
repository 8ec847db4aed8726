"""Signal or background of a particle detector; the running statistics follow the last batch.

The network was ported from Keras, where momentum=0.99 means that the old average is kept to 99
parts in a hundred. In PyTorch the same number is the weight of the new batch, so the statistics
used in evaluation are those of the last few events. Training looks well; the validation jumps up
and down from epoch to epoch.
The place is the batch norm layers.
The twin writes momentum=0.01, which is what the port meant.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("net.1", "net.4", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def simulate_events(n, g):
    """Four-momentum like columns of two decays; heavy tails as a detector has them."""
    y = (torch.rand(n, generator=g) < 0.5).float()
    base = torch.randn(n, 12, generator=g)
    mass = torch.exp(0.8 * base[:, 0] + 0.9 * y)
    angle = base[:, 1] * (0.6 + 0.8 * y)
    x = torch.cat(
        [base[:, 2:], mass.log()[:, None], angle[:, None], (mass * angle).tanh()[:, None]], 1
    )
    x[:, 3] += y * 0.5 * base[:, 4]
    x[:, 5] = x[:, 5] * torch.exp(0.5 * torch.randn(n, generator=g))
    return x, y


class Tagger(nn.Module):
    def __init__(self, inputs, momentum):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, 48),
            nn.BatchNorm1d(48, momentum=momentum),
            nn.ReLU(),
            nn.Linear(48, 48),
            nn.BatchNorm1d(48, momentum=momentum),
            nn.ReLU(),
            nn.Linear(48, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = simulate_events(6000, g)
x_train, x_val = standardise(x[:4000], x[4000:])
y_train, y_val = y[:4000], y[4000:]
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=16, shuffle=True, drop_last=True)
model = Tagger(x.shape[1], 0.01 if healthy else 0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()

history = []
for epoch in range(5):
    model.train()
    running = 0.0
    for events, labels in loader:
        loss = criterion(model(events), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = criterion(scores, y_val).item()
        acc = ((scores > 0) == (y_val > 0.5)).float().mean().item()
    history.append(acc)
    print(f"{epoch}: train {running / len(loader):.3f}  val {val_loss:.3f}  acc {acc:.3f}")
print(f"mean val acc {sum(history) / len(history):.3f}")
