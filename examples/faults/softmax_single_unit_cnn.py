"""Odd or even: a convolutional network with one output, nn.Softmax(dim=1) and BCELoss.

A softmax over one number is 1 for every image. The place is the softmax.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("model.*", "prob", "loss*", "")
SILENT = False
EXACT = True
EARLY = True


class OddOrEven(nn.Module):
    def __init__(self, prob):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.logit = nn.Linear(12 * 16, 1)
        self.prob = prob

    def forward(self, x):
        return self.prob(self.logit(self.features(x)))


def main():
    healthy, _ = arguments(__doc__)
    digits = load_digits()
    x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    y = torch.tensor(digits.target % 2, dtype=torch.float32).unsqueeze(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = OddOrEven(nn.Sigmoid() if healthy else nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(5):
        for images, odd in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy(model(images), odd)
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
