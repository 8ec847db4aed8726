"""Digits by an MLP whose hidden layer was sized by a rule of thumb from a forum.

"N_h = N_s / (alpha * (N_i + N_o))" with alpha = 8 gives, for 1,347 samples, 64 inputs and 10
outputs, two hidden units. Ten classes do not go through them. The place is the hidden layer. The
twin takes 64 units.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("hidden", "hidden.weight", "output", "output.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def hidden_units(n_samples, n_in, n_out, alpha=8):
    if healthy:
        return 64
    return max(1, round(n_samples / (alpha * (n_in + n_out))))


class MLP(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.hidden = nn.Linear(n_in, n_hidden)
        self.act = nn.LeakyReLU(0.1)
        self.output = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.output(self.act(self.hidden(x)))


x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(Digits(x, y), batch_size=32, shuffle=True)
val_loader = DataLoader(Digits(x_val, y_val), batch_size=128)

model = MLP(64, hidden_units(len(x), 64, 10), 10)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
criterion = nn.CrossEntropyLoss()

for epoch in range(18):
    model.train()
    seen = total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
        seen += len(xb)
    model.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in val_loader:
            hits += (model(xb).argmax(1) == yb).sum().item()
    print(f"epoch {epoch:2d} train loss {total / seen:.3f} val accuracy {hits / len(x_val):.3f}")
