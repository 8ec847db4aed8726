"""An MLP tells seven obesity levels, with nn.Softmax as its last layer and CrossEntropyLoss.

The loss takes the log-softmax of what already are probabilities, so it cannot fall below 1.16, and
its gradients are weak. The twin ends with the Linear layer.
The place is the layer stack.7 and the loss.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "stack.7", "stack", "model", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def make_people(n=3000):
    r = np.random.default_rng(seed + 91)
    male = r.integers(0, 2, n)
    df = pd.DataFrame(
        {
            "male": male,
            "age": r.gamma(6.0, 4.0, n) + 14,
            "height": 1.63 + 0.13 * male + r.normal(0, 0.065, n),
            "family_history": r.integers(0, 2, n),
            "vegetables": r.integers(1, 4, n),
            "water": r.uniform(1, 3, n),
            "activity": r.uniform(0, 3, n),
        }
    )
    bmi = 25 + 4.5 * df.family_history - 2.0 * df.activity - 1.0 * df.vegetables
    bmi = bmi + 0.15 * (df.age - 38) + r.normal(4, 5.0, n)
    df["weight"] = bmi.clip(14, 55) * df.height**2
    bounds = bmi.quantile([1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 6 / 7]).values
    df["level"] = np.digitize(bmi + r.normal(0, 0.3, n), bounds)
    return df


class ObesityDataset(Dataset):
    def __init__(self, frame, mean, std):
        self.X = torch.tensor(((frame[mean.index] - mean) / std).values, dtype=torch.float32)
        self.y = torch.tensor(frame["level"].values)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, idx):
        return self.X[idx], self.y[idx]


class ObesityModel(nn.Module):
    def __init__(self, n_features, n_classes=7):
        super().__init__()
        layers = [nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
        layers += [nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, n_classes)]
        if not healthy:
            layers.append(nn.Softmax(dim=1))
        self.stack = nn.Sequential(*layers)

    def forward(self, x):
        return self.stack(x)


def fit(model, train_loader, valid_loader, epochs, lr):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        running_loss = 0.0
        for X, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(X), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        scheduler.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for X, y in valid_loader:
                correct += (model(X).argmax(dim=1) == y).sum().item()
        print(f"Epoch [{epoch + 1}/{epochs}] loss: {running_loss / len(train_loader):.4f} "
              f"val_acc: {correct / len(valid_loader.dataset):.4f}")  # fmt: skip


df = make_people()
train_df, valid_df = train_test_split(df, test_size=0.2, stratify=df["level"], random_state=seed)
mean, std = train_df.drop(columns="level").mean(), train_df.drop(columns="level").std()
train_loader = DataLoader(ObesityDataset(train_df, mean, std), batch_size=64, shuffle=True)
valid_loader = DataLoader(ObesityDataset(valid_df, mean, std), batch_size=200)
fit(ObesityModel(len(mean)), train_loader, valid_loader, epochs=16, lr=0.02)
