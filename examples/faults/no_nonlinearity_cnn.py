"""Convolutions with batch norm, but without an activation, before one linear layer.

Batch norm and average pooling are linear, too, so all of it is. The loss still falls (silent). The
place is the body.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("body*", "head", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def block(before, after):
    layers = [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
    if healthy:
        layers.append(nn.ReLU(inplace=True))
    return layers


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*block(1, 8), nn.AvgPool2d(2), *block(8, 16), nn.AvgPool2d(2))
        self.head = nn.Linear(64, 10)

    def forward(self, pixels):
        return self.head(self.body(pixels).flatten(1))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(9):
    for pixels, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
model.eval()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
