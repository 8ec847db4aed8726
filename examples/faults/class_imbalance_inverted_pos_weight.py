"""An anchor head that finds rare objects; the weight of the positive anchors is the wrong way up.

Of the anchors 2 in 100 hold an object. `pos_weight` should be the negatives per positive; the
helper returns the positives per negative, so that an object counts 50 times less instead of 50
times more. Everything is called background, with an accuracy of 98 %. The place is the loss (the
imbalance lies in the labels). The twin returns negatives / positives, damped by a square root as
detectors do.
"""

import torch
from data import arguments
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "label*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CELLS, FEATURES = 36, 16


def scenes(count, mixing):
    """Feature maps (count, CELLS, FEATURES) with an object in about 2 of 100 cells."""
    holds = torch.rand(count, CELLS) < 0.02
    hidden = torch.randn(count, CELLS, FEATURES)
    hidden[..., 0] += 2.8 * holds
    hidden[..., 1] = torch.where(holds, hidden[..., 1].abs() + 1.2, hidden[..., 1])
    return hidden @ mixing, holds.float()


def positive_weight(holds):
    positive = holds.sum()
    negative = holds.numel() - positive
    return (negative / positive).sqrt() if healthy else positive / negative


class AnchorHead(nn.Module):
    """Each cell with the mean of its scene, through a shared perceptron."""

    def __init__(self, width=32):
        super().__init__()
        self.lift = nn.Linear(2 * FEATURES, width)
        self.norm = nn.LayerNorm(width)
        self.objectness = nn.Linear(width, 1)

    def forward(self, x):
        context = x.mean(1, keepdim=True).expand_as(x)
        return self.objectness(
            self.norm(torch.relu(self.lift(torch.cat([x, context], -1))))
        ).squeeze(-1)


class Trainer:
    def __init__(self, model, train, val, epochs=8, batch=16):
        self.model, self.train_set, self.val_set = model, train, val
        self.epochs, self.batch = epochs, batch
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=positive_weight(train[1]))
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)

    def epoch(self):
        self.model.train()
        total, x, y = 0.0, *self.train_set
        for rows in torch.randperm(len(x)).split(self.batch):
            loss = self.criterion(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows) / len(x)
        return total

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x, y = self.val_set
        found = self.model(x) > 0
        hits = (found & (y > 0)).sum().item()
        recall = hits / y.sum().item()
        precision = hits / max(found.sum().item(), 1)
        accuracy = (found == (y > 0)).float().mean().item()
        return {
            "accuracy": accuracy,
            "recall": recall,
            "f1": 2 * recall * precision / max(recall + precision, 1e-9),
        }

    def fit(self):
        for number in range(self.epochs):
            loss = self.epoch()
            told = " ".join(f"{name} {value:.3f}" for name, value in self.evaluate().items())
            print(f"epoch {number:2d} loss {loss:.4f} val {told}")


mixing = torch.linalg.qr(torch.randn(FEATURES, FEATURES)).Q
trainer = Trainer(AnchorHead(), scenes(700, mixing), scenes(300, mixing))
trainer.fit()
print("validation F1 of objects {f1:.3f}, recall {recall:.3f}".format(**trainer.evaluate()))
