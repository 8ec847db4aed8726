"""A classifier looks for fraudulent payments, 3 in 100, with a plain cross-entropy; it calls
everything honest.

Accuracy is 97 % and the loss falls, so the writer is content, while almost no fraud is found. The
classes overlap, so nothing but a weight (or a sampler) makes the network answer "fraud". The
place is the loss and the loader.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def make_payments(n, g):
    fraud = (torch.rand(n, generator=g) < 0.03).long()
    x = torch.randn(n, 10, generator=g)
    f = fraud.float()
    x[:, 0] += 0.8 * f  # amount
    x[:, 1] -= 0.6 * f  # age of the account
    x[:, 2] += 0.7 * f  # distance from home
    x[:, 3] *= 1 + 0.5 * f  # time between payments
    x[:, 4] += 0.5 * x[:, 0]
    return x, fraud


class Payments(Dataset):
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


g = torch.Generator().manual_seed(seed)
x_train, y_train = make_payments(6400, g)
x_val, y_val = make_payments(3000, g)
x_train, x_val = standardise(x_train, x_val)
train_loader = DataLoader(Payments(x_train, y_train), batch_size=128, shuffle=True)
val_loader = DataLoader(Payments(x_val, y_val), batch_size=500)
counts = torch.bincount(y_train)
print("honest:", counts[0].item(), "fraud:", counts[1].item())

model = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 2))
weight = len(y_train) / (2.0 * counts) if healthy else None
criterion = nn.CrossEntropyLoss(weight=weight)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)


def validate():
    model.eval()
    predictions, labels = [], []
    with torch.no_grad():
        for x, y in val_loader:
            predictions.append(model(x).argmax(dim=1))
            labels.append(y)
    p, y = torch.cat(predictions), torch.cat(labels)
    accuracy = (p == y).float().mean().item()
    fraud_recall = (p[y == 1] == 1).float().mean().item()
    honest_recall = (p[y == 0] == 0).float().mean().item()
    return accuracy, fraud_recall, (fraud_recall + honest_recall) / 2


for epoch in range(1, 21):
    model.train()
    epoch_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    acc, found, balanced = validate()
    print(
        f"epoch {epoch}: loss {epoch_loss / len(train_loader):.4f} acc {acc:.4f} "
        f"fraud found {found:.3f} balanced acc {balanced:.3f}"
    )
