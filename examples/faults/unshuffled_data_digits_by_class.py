"""A CNN on digits that lie in folders by class, read without shuffling.

Folder after folder: each batch has one digit only, and the network runs after the last one it saw.
The place is the data (the loader). The twin sets shuffle=True.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
by_folder = torch.argsort(y, stable=True)
train_set = TensorDataset(x[by_folder], y[by_folder])
train_loader = DataLoader(train_set, batch_size=32, shuffle=healthy)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Linear(64, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def validate(model):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in val_loader:
            correct += (model(data).argmax(1) == target).sum().item()
    return correct / len(val_loader.dataset)


model = SmallCNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
for epoch in range(1, 11):
    model.train()
    for i, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        if i % 14 == 0:
            print(f"epoch {epoch} [{i}/{len(train_loader)}] loss {loss.item():.3f}")
    print(f"epoch {epoch} accuracy {validate(model):.3f}")
