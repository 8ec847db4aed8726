"""Moods of songs, several to a song: trained with the loss for exactly one class per row.

CrossEntropyLoss took the rows of zeros and ones without a word, as it also takes probabilities.
But it makes the moods compete with one another, and the answers are then read, each for itself,
by whether its sigmoid is above one half.
The place is the loss. The twin has the binary cross-entropy for each mood.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "output*", "label*")
SILENT = False
EXACT = False
EARLY = True

MOODS = ("calm", "happy", "sad", "angry", "dreamy", "driving")


class MoodTagger(nn.Module):
    def __init__(self, features, width=64):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.body = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Dropout(0.1))
        self.tags = nn.Linear(width, len(MOODS))

    def forward(self, x):
        return self.tags(self.body(self.norm(x)))


def songs(n, weights):
    features = torch.randn(n, 20)
    score = features @ weights + 0.5 * torch.randn(n, len(MOODS))
    return TensorDataset(features, (score > 0.3).float())


def f1(model, dataset):
    model.eval()
    with torch.no_grad():
        said = torch.sigmoid(model(dataset.tensors[0])) > 0.5
    model.train()
    true = dataset.tensors[1] > 0.5
    hits = (said & true).sum(0)
    return (2 * hits / (said.sum(0) + true.sum(0)).clamp(min=1)).mean().item()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    weights = torch.randn(20, len(MOODS)) / 3
    train, val = songs(2000, weights), songs(600, weights)
    model = MoodTagger(20)
    criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        loss_sum = 0.0
        for x, y in DataLoader(train, batch_size=50, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() / 40
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: loss {loss_sum:.4f}  mean F1 {f1(model, val):.3f}")
