"""A CNN tells vertical, horizontal and diagonal stripes apart, but the results of F.relu are thrown
away.

F.relu(x) gives a new tensor and does not change x, so the network is linear. Stripes of random
phase average to nothing in a linear network with average pooling: accuracy is chance. The twin
assigns the result. The place is `conv1`, `conv2`, `conv3` or `fc`.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("conv1", "conv2", "conv3", "fc")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def stripes(n, size=16):
    y = torch.randint(0, 3, (n,))
    angle = torch.tensor([0.0, math.pi / 2, math.pi / 4])[y] + 0.15 * torch.randn(n)
    rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    freq = 0.8 + 0.6 * torch.rand(n, 1, 1)
    along = angle.cos().view(-1, 1, 1) * cols + angle.sin().view(-1, 1, 1) * rows
    x = torch.sin(freq * along + 2 * math.pi * torch.rand(n, 1, 1))
    return (x + 0.3 * torch.randn(n, size, size)).unsqueeze(1), y


class StripeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2)
        self.conv3 = nn.Conv2d(24, 24, 3)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = conv(x)
            if healthy:
                x = F.relu(x)
            else:
                F.relu(x)
        return self.fc(x.mean((2, 3)))


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = right = n = 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, right / n


train_loader = DataLoader(TensorDataset(*stripes(2000)), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(*stripes(500)), batch_size=250)
model = StripeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    train = run_epoch(model, train_loader, optimizer)
    scheduler.step()
    if epoch % 2 == 1:
        val = run_epoch(model, val_loader)
        print(
            f"epoch {epoch + 1}: train {train[0]:.3f} / {train[1]:.3f}, "
            f"val {val[0]:.3f} / {val[1]:.3f}"
        )
