"""A wide MLP foretells which of 300 customers leave, for far too many epochs.

No stop by the validation loss, no decay, no dropout: the training loss goes to 0 while the
validation loss, best after some ten epochs, rises to several times its best. The place is the
loop.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def customers(n):
    """Four columns that matter, twelve that matter little; leaving is partly chance."""
    x = torch.randn(n, 16)
    score = 1.6 * x[:, 0] + 1.2 * x[:, 1] - 0.6 * x[:, 2] ** 2 + 0.9 * x[:, 1] * x[:, 3] + 0.3
    score = score + 0.15 * x[:, 4:].sum(1)
    return x, torch.bernoulli(torch.sigmoid(1.3 * score))


class Churn(nn.Module):
    def __init__(self, inputs, hidden=200):
        super().__init__()
        self.hidden1 = nn.Linear(inputs, hidden)
        self.hidden2 = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.output(x).squeeze(1)


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for a, b in loader:
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(b)
    return total / len(loader.dataset)


def validate(model, x, y, criterion):
    model.eval()
    with torch.no_grad():
        scores = model(x)
        return criterion(scores, y).item(), ((scores > 0) == (y > 0)).float().mean().item()


def main():
    x, y = customers(900)
    x, x_val = standardise(x[:300], x[300:])
    y, y_val = y[:300], y[300:]
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Churn(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    criterion = nn.BCEWithLogitsLoss()
    epochs = 16 if healthy else 150
    for epoch in range(epochs):
        train = train_epoch(model, loader, optimizer, criterion)
        val, right = validate(model, x_val, y_val, criterion)
        if epoch % 10 == 9 or epoch < 20:
            print(f"epoch {epoch} train {train:.4f} val {val:.4f} accuracy {right:.3f}")
    print(f"last val loss {val:.4f}")


main()
