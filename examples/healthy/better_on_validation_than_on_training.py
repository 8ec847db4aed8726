"""A digit net with dropout is better on validation than on training, and rightly so.

The person of the question suspected that training rows were in the validation part. The training
figures are taken with dropout on and while the weights still change; the validation figures with
the whole net after the epoch.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = (
    "validation is better than training in every epoch: dropout is on in training only, and the"
    " training figures are means over the epoch; no row is in both parts"
)
_, seed = arguments(__doc__)


class DigitFrame(Dataset):
    def __init__(self, x, y):
        self.x = torch.tensor(x, dtype=torch.float32)
        self.y = torch.tensor(y.to_numpy())

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class DigitNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 96)
        self.fc2 = nn.Linear(96, 48)
        self.out = nn.Linear(48, 10)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        x = self.drop(torch.relu(self.fc1(x)))
        x = self.drop(torch.relu(self.fc2(x)))
        return self.out(x)


def run(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    losses, right = [], 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.item() * len(y))
            right += (logits.argmax(1) == y).sum().item()
    return np.sum(losses) / len(loader.dataset), right / len(loader.dataset)


bunch = load_digits(as_frame=True)
frame: pd.DataFrame = bunch.frame
pixels = frame.drop(columns="target")
pixels = pixels.loc[:, pixels.gt(0).mean() > 0.01]
x_train, x_valid, y_train, y_valid = train_test_split(
    pixels, frame["target"], test_size=0.3, stratify=frame["target"], random_state=seed
)
scaler = StandardScaler().fit(x_train)
train_set = DigitFrame(scaler.transform(x_train), y_train)
valid_set = DigitFrame(scaler.transform(x_valid), y_valid)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=540)
model = DigitNet(x_train.shape[1])
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(18):
    train_loss, train_acc = run(model, train_loader, criterion, optimizer)
    valid_loss, valid_acc = run(model, valid_loader, criterion)
    print(
        f"Epoch {epoch + 1:2d}: train loss {train_loss:.4f} acc {train_acc:.4f}"
        f" | val loss {valid_loss:.4f} acc {valid_acc:.4f}"
    )
