"""A CNN finds rude comments of a forum; most comments were crawled several times, and copies lie
in both parts.

The rows of the crawl are split at random, although a comment that was quoted or reposted has many
rows that are equal. The network learns them by heart, and validation applauds. The twin splits by
comment. The place is the split, that is the loaders' data.
"""

import random

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

VOCABULARY, LENGTH = 600, 18
r = random.Random(seed)
RUDE = [r.randrange(1, VOCABULARY) for _ in range(40)]


def comment():
    """Rude ones have more words of a list; one judgement in eight is the other way round."""
    rude = r.random() < 0.5
    words = [
        r.choice(RUDE) if r.random() < (0.3 if rude else 0.07) else r.randrange(1, VOCABULARY)
        for _ in range(LENGTH)
    ]
    return words, int(rude) if r.random() < 0.88 else 1 - int(rude)


def crawl(n):
    """Comments, each of them up to four times, and the number of the comment for each row."""
    rows, labels, ids = [], [], []
    for i in range(n):
        words, label = comment()
        for _ in range(r.randint(1, 4)):
            rows.append(words)
            labels.append(label)
            ids.append(i)
    return torch.tensor(rows), torch.tensor(labels), np.array(ids)


class CommentCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.conv = nn.Conv1d(32, 64, 3, padding=1)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(64, 2)

    def forward(self, words):
        features = self.conv(self.embed(words).transpose(1, 2)).relu().mean(2)
        return self.fc(self.drop(features))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = right = n = 0
    for words, labels in loader:
        logits = model(words)
        loss += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
        right += (logits.argmax(1) == labels).sum().item()
        n += len(labels)
    return loss / n, right / n


def train(model, train_loader, val_loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for words, labels in train_loader:
            loss = nn.functional.cross_entropy(model(words), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train_loader)
        print(
            "epoch %d loss %.3f val loss %.3f acc %.3f"  # noqa: UP031
            % (epoch, total, *evaluate(model, val_loader))
        )


words, labels, ids = crawl(2000)
dataset = TensorDataset(words, labels)
key = ids if healthy else np.arange(len(ids))
names = np.random.permutation(np.unique(key))
held_out = np.isin(key, names[: len(names) // 5])
train_loader = DataLoader(Subset(dataset, np.flatnonzero(~held_out).tolist()), 64, shuffle=True)
val_loader = DataLoader(Subset(dataset, np.flatnonzero(held_out).tolist()), 256)
model = CommentCNN()
train(model, train_loader, val_loader, 6)

fresh = [comment() for _ in range(1500)]
fresh_set = TensorDataset(
    torch.tensor([w for w, _ in fresh]), torch.tensor([label for _, label in fresh])
)
print(
    "comments of the week after: loss {:.3f} acc {:.3f}".format(
        *evaluate(model, DataLoader(fresh_set, 500))
    )
)
