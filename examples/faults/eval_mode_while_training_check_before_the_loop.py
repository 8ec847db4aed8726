"""A deep 1D CNN tells wave shapes apart; it is put into eval mode for a first check and never
back into train mode.

The writer validates the untrained network once, which calls model.eval(); nothing calls
model.train() afterwards. All batch norms keep mean 0 and variance 1 and normalise nothing, so the
signal fades through the depth. The place is the loop and the batch norm layers.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "body*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

x, y = waves(seed, n=1600, length=40)
x = x.transpose(1, 2) + 0.35 * torch.randn(1600, 1, 40)
train_loader = DataLoader(
    TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True, drop_last=True
)
val_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)


def block(n_in, n_out, pool=False):
    layers = [nn.Conv1d(n_in, n_out, 5, padding=2, bias=False), nn.BatchNorm1d(n_out), nn.ReLU()]
    if pool:
        layers.append(nn.MaxPool1d(2))
    return nn.Sequential(*layers)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            block(1, 16),
            block(16, 16),
            block(16, 16, pool=True),
            block(16, 24, pool=True),
            block(24, 32),
        )
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=2))


model = WaveNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def validate():
    model.eval()
    loss_sum, right = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = model(xb)
            loss_sum += criterion(out, yb).item()
            right += (out.argmax(1) == yb).sum().item()
    return loss_sum / len(val_loader), right / 400


val_loss, val_acc = validate()
print(f"before training: val loss {val_loss:.3f}, accuracy {val_acc:.3f}")

for epoch in range(1, 9):
    if healthy:
        model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    val_loss, val_acc = validate()
    print(
        f"epoch {epoch}: train {train_loss / len(train_loader):.3f} "
        f"val {val_loss:.3f} acc {val_acc:.3f}"
    )
