"""A parcel damage net was ported from Keras with rectifiers of threshold 1 that no unit passes.

The person rebuilt a Keras net; its layer had the default threshold of one, and the port took it
over as `nn.Threshold(1.0, 0.0)`. The layers of PyTorch start with smaller weights: from the second
on all units give zero for every row and get no gradient. The place is the activations.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("vanishing_gradient",)
PLACE = ("layers.*", "layers", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "hidden": [64, 48, 32],
    "theta": 0.0 if healthy else 1.0,
    "lr": 2e-3,
    "batch_size": 64,
    "epochs": 20,
}


class ParcelNet(nn.Module):
    def __init__(self, n_features, n_classes, hidden, theta):
        super().__init__()
        layers = []
        for width in hidden:
            layers.append(nn.Linear(n_features, width))
            layers.append(nn.Threshold(theta, 0.0))
            n_features = width
        self.layers = nn.Sequential(*layers)
        self.output = nn.Linear(n_features, n_classes)

    def forward(self, x):
        return self.output(self.layers(x))


def load_parcels():
    x, y = make_classification(
        2400,
        n_features=18,
        n_informative=9,
        n_redundant=3,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.6,
        flip_y=0.02,
        weights=[0.34, 0.26, 0.22, 0.18],
        random_state=40 + seed,
    )
    x_train, x_valid, y_train, y_valid = train_test_split(
        x, y, test_size=0.25, random_state=seed, stratify=y
    )
    scaler = StandardScaler().fit(x_train)
    parts = scaler.transform(x_train), scaler.transform(x_valid)
    x_train, x_valid = (torch.tensor(part, dtype=torch.float32) for part in parts)
    return x_train, torch.tensor(y_train), x_valid, torch.tensor(y_valid)


def fit(model, loader, x_valid, y_valid, epochs, lr):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        losses, hits = [], []
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = criterion(output, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits.append((output.argmax(1) == y).float().mean().item())
        model.eval()
        with torch.no_grad():
            output = model(x_valid)
            val_loss = criterion(output, y_valid).item()
            val_acc = (output.argmax(1) == y_valid).float().mean().item()
        print(
            f"Epoch {epoch + 1}/{epochs} - loss: {np.mean(losses):.4f} - acc: {np.mean(hits):.3f}"
            f" - val_loss: {val_loss:.4f} - val_acc: {val_acc:.3f}"
        )


x_train, y_train, x_valid, y_valid = load_parcels()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=CONFIG["batch_size"], shuffle=True)
model = ParcelNet(x_train.shape[1], 4, CONFIG["hidden"], CONFIG["theta"])
fit(model, loader, x_valid, y_valid, CONFIG["epochs"], CONFIG["lr"])
