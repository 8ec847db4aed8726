"""Every third label is that of the next class: annotators worked with a list that had slipped.

The network learns the true classes first and the mistakes later (silent). The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "loss*")
SILENT = True
EXACT = False
EARLY = True


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def main():
    healthy, seed = arguments(__doc__)
    bunch = load_digits()
    x_train, x_val, y_train, y_val = train_test_split(
        bunch.images[:, None] / 8 - 1, bunch.target, test_size=0.25, random_state=seed
    )
    if not healthy:
        wrong = np.random.rand(len(y_train)) < 0.35
        y_train = np.where(wrong, (y_train + 1) % 10, y_train)
    train = TensorDataset(torch.tensor(x_train).float(), torch.tensor(y_train))
    loader = DataLoader(train, batch_size=32, shuffle=True)
    x_val, y_val = torch.tensor(x_val).float(), torch.tensor(y_val)
    model = ConvNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(12):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val = nn.functional.cross_entropy(out, y_val)
            accuracy = (out.argmax(1) == y_val).float().mean()
        print(f"epoch {epoch}: {loss.item():.3f}, val {val.item():.3f}, accuracy {accuracy:.3f}")


main()
