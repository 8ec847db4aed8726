"""A net for tidy pictures is tuned to few noisy ones with its BatchNorm in eval mode and its body
at a tiny rate.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "BatchNorm layers are in eval mode and frozen while training, batches have 8 pictures, and the "
    "rate of the body is a hundredth of the head's: all on purpose, after a pre-training"
)

_, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(32 * 16, 5)
        self.fixed_norms = False

    def forward(self, x):
        return self.head(self.body(x))

    def train(self, mode=True):
        super().train(mode)
        if self.fixed_norms:
            for layer in self.body:
                if isinstance(layer, nn.BatchNorm2d):
                    layer.eval()
        return self


def epoch(model, optimizer, x, y, size):
    model.train()
    for rows in torch.randperm(len(x)).split(size):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
old, old_val = y < 5, y_val < 5
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(5):
    loss = epoch(model, optimizer, x[old], y[old], 32)
print(
    f"digits 0 to 4: loss {loss:.3f}, accuracy "
    f"{accuracy(model, x_val[old_val], y_val[old_val]):.3f}"
)

# new task: digits 5 to 9 by a worse scanner, 160 of them
new, new_val = (y >= 5).nonzero()[:160, 0], y_val >= 5
x_new, y_new = x[new] + 0.3 * torch.randn_like(x[new]), y[new] - 5
x_test, y_test = x_val[new_val], y_val[new_val] - 5
x_test = x_test + 0.3 * torch.randn_like(x_test)
model.head = nn.Linear(32 * 16, 5)
model.fixed_norms = True
for layer in model.body:
    if isinstance(layer, nn.BatchNorm2d):
        layer.requires_grad_(False)
body = [p for p in model.body.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(
    [{"params": body, "lr": 2e-5}, {"params": model.head.parameters(), "lr": 2e-3}]
)
for number in range(12):
    loss = epoch(model, optimizer, x_new, y_new, 8)
print(f"digits 5 to 9: loss {loss:.3f}, accuracy {accuracy(model, x_test, y_test):.3f}")
