"""Tags films with several genres each, but trains with the softmax loss of one-label tasks.

The labels are rows of 0 and 1, which nn.CrossEntropyLoss accepts as "probabilities". The genres
compete for one softmax, and the evaluation takes the sigmoid of scores that were never trained for
it: all genres are right for one film in five, for more than two in five with the loss that fits.
The place is the loss.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import f1_score
from torch import nn, optim

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GENRES = ("drama", "comedy", "crime", "horror", "romance", "war", "family", "western")


def films(n, rng):
    """Forty measurements of a script (word counts in groups) and its genres."""
    mood = rng.normal(size=(n, 6))
    taste = np.random.default_rng(3).normal(size=(6, len(GENRES)))
    wish = mood @ taste + 0.4 * np.maximum(mood[:, :1] * mood[:, 1:2], -1)
    genres = (wish + rng.normal(0, 0.5, wish.shape) > 1.0).astype(np.float32)
    spread = np.random.default_rng(4).normal(size=(6, 40))
    script = np.tanh(mood @ spread / 2) + 0.3 * rng.normal(size=(n, 40))
    return torch.tensor(script, dtype=torch.float32), torch.tensor(genres)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(40, 64)
        self.fc2 = nn.Linear(64, 64)
        self.dropout = nn.Dropout(0.1)
        self.tags = nn.Linear(64, len(GENRES))

    def forward(self, script):
        h = torch.relu(self.fc1(script))
        h = torch.relu(self.fc2(self.dropout(h)))
        return self.tags(self.dropout(h))


def train_one_epoch(model, optimizer, criterion, x, y, batch_size=64):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(batch_size):
        optimizer.zero_grad()
        loss = criterion(model(x[idx]), y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def test(model, x, y):
    model.eval()
    tags = (torch.sigmoid(model(x)) > 0.5).float()
    exact = (tags == y).all(1).float().mean().item()
    hamming = (tags != y).float().mean().item()
    return f1_score(y.numpy(), tags.numpy(), average="micro", zero_division=0), exact, hamming


def main():
    rng = np.random.default_rng(60 + seed)
    x, y = films(2400, rng)
    x_test, y_test = films(600, rng)
    x, x_test = standardise(x, x_test)
    model = Tagger()
    criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    print(f"{y.sum(1).mean():.2f} genres a film")
    for epoch in range(1, 21):
        loss = train_one_epoch(model, optimizer, criterion, x, y)
        if epoch % 2 == 0:
            f1, exact, hamming = test(model, x_test, y_test)
            print(
                f"Epoch {epoch:02d} - loss: {loss:.4f} - f1: {f1:.4f} - "
                f"all genres right: {exact:.4f} - hamming: {hamming:.4f}"
            )


if __name__ == "__main__":
    main()
