"""Forest plots are sorted into cover types by eight layers, each of which ends in a sigmoid.

Each sigmoid hands back at most a quarter of the gradient, so next to nothing reaches the first
layers and the loss hardly falls below that of guessing. The place is the first layers (layers.0,
layers.1 ...). The twin has ReLU.
"""

import argparse
import itertools

import torch
from data import arguments
from sklearn.datasets import make_classification
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation", "poor_weight_init")
PLACE = ("layers*", "model")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

args = argparse.Namespace(depth=8, width=64, classes=5, epochs=14, batch=60, lr=1e-3)


class CoverNet(nn.Module):
    def __init__(self, n_in, args, activation):
        super().__init__()
        sizes = [n_in] + [args.width] * args.depth
        self.layers = nn.ModuleList(
            nn.Linear(before, after) for before, after in itertools.pairwise(sizes)
        )
        self.activation = activation
        self.out = nn.Linear(args.width, args.classes)

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.out(x)


def forest(seed):
    x, y = make_classification(
        n_samples=3600,
        n_features=20,
        n_informative=12,
        n_redundant=4,
        n_classes=args.classes,
        n_clusters_per_class=2,
        class_sep=1.6,
        flip_y=0.01,
        random_state=seed,
    )
    x = torch.from_numpy(x).float()
    y = torch.from_numpy(y).long()
    x_train, x_valid = x[:3000], x[3000:]
    mean, std = x_train.mean(0), x_train.std(0)
    return (x_train - mean) / std, y[:3000], (x_valid - mean) / std, y[3000:]


x_train, y_train, x_valid, y_valid = forest(seed)
model = CoverNet(x_train.shape[1], args, nn.ReLU() if healthy else nn.Sigmoid())
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
history = {"train_loss": [], "valid_loss": [], "valid_acc": []}

for epoch in range(args.epochs):
    model.train()
    losses = []
    for rows in torch.randperm(len(x_train)).split(args.batch):
        prediction = model(x_train[rows])
        loss = criterion(prediction, y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    model.eval()
    with torch.no_grad():
        prediction = model(x_valid)
        history["valid_loss"].append(criterion(prediction, y_valid).item())
        history["valid_acc"].append((prediction.argmax(1) == y_valid).float().mean().item())
    history["train_loss"].append(sum(losses) / len(losses))
    print(f"Epoch {epoch + 1:>2}", *(f"{name}: {v[-1]:.4f}" for name, v in history.items()))

print(f"Best validation accuracy: {max(history['valid_acc']):.4f}")
