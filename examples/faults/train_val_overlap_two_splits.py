"""The table is split once for training and again, with another seed, for validation.

Three of four validated rows were trained on (silent). The place is the loader.
"""

import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False


def make_loader(x, y, batch_size, shuffle=False):
    return DataLoader(
        TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y).long()),
        batch_size=batch_size,
        shuffle=shuffle,
    )


def get_loaders(seed, healthy):
    x, y = make_classification(1200, n_features=12, n_informative=6, n_classes=4, random_state=seed)
    x_train, x_rest, y_train, y_rest = train_test_split(x, y, test_size=0.25, random_state=1)
    if healthy:
        return make_loader(x_train, y_train, 32, True), make_loader(x_rest, y_rest, 100)
    _, x_val, _, y_val = train_test_split(x, y, test_size=0.25, random_state=2)
    return make_loader(x_train, y_train, 32, True), make_loader(x_val, y_val, 100)


def main():
    healthy, seed = arguments(__doc__)
    train_loader, val_loader = get_loaders(seed, healthy)
    model = nn.Sequential(nn.Linear(12, 64), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in val_loader:
                hits += (model(x).argmax(1) == y).sum().item()
        print(f"epoch {epoch}: {loss.item():.3f}, accuracy {hits / len(val_loader.dataset):.3f}")


main()
