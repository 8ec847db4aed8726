"""Cherry trees and their yield class: the frame is shuffled, then features are read by position and
labels by the old index.

`frame.sample(frac=1)` keeps the index, so `self.target[i]` looks up the tree that had number i
before, while `self.x[i]` takes the i-th row of the shuffled table. Features and labels belong to
different trees and accuracy stays at chance. The place is the labels in the dataset.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("labels", "loader", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

FEATURES = ["age", "height", "bloom_day", "frost_nights", "rain", "bees", "pruned"]


def orchard(n, rng):
    frame = pd.DataFrame(
        {
            "age": rng.uniform(3, 40, n),
            "height": rng.normal(4.5, 1.0, n),
            "bloom_day": rng.normal(100, 8, n),
            "frost_nights": rng.poisson(2.0, n),
            "rain": rng.gamma(5, 20, n),
            "bees": rng.gamma(3, 10, n),
            "pruned": rng.integers(0, 2, n),
        }
    )
    late = frame["bloom_day"] > 98
    score = (
        -(((frame["age"] - 18) / 9) ** 2)
        - 0.5 * frame["frost_nights"] * (~late)
        + 0.05 * frame["bees"]
        + 0.5 * frame["pruned"]
        - (((frame["rain"] - 100) / 70) ** 2)
        + rng.normal(0, 0.15, n)
    )
    frame["yield_class"] = pd.qcut(score, 3, labels=False)
    return frame


class OrchardDataset(Dataset):
    def __init__(self, frame):
        x = frame[FEATURES]
        self.x = torch.tensor(((x - x.mean()) / x.std()).to_numpy(), dtype=torch.float32)
        self.target = frame["yield_class"]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        label = self.target.iloc[i] if healthy else self.target[i]
        return self.x[i], int(label)


def evaluate(model, loader, criterion):
    model.eval()
    loss_sum, correct = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss_sum += criterion(logits, y).item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
    return loss_sum / len(loader.dataset), correct / len(loader.dataset)


def main():
    frame = orchard(2400, np.random.default_rng(seed)).sort_values("age").reset_index(drop=True)
    frame = frame.sample(frac=1, random_state=seed)
    train_set, val_set = random_split(OrchardDataset(frame), [1800, 600])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)

    model = nn.Sequential(
        nn.Linear(len(FEATURES), 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 3)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(12):
        model.train()
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        print(f"epoch {epoch} validation loss {val_loss:.3f} accuracy {val_acc:.3f}")


main()
