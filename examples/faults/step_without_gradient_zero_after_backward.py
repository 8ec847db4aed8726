"""A small CNN on the digits; zero_grad() stands between backward() and step().

The three calls are all there, in the wrong order: the gradients are cleared before the optimizer
sees them, and no weight ever moves. The place is the loop. The twin clears before backward().
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def train_one_epoch(model, loader, optimizer):
    model.train()
    losses = []
    for data, target in loader:
        output = model(data)
        loss = F.cross_entropy(output, target)
        if healthy:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    loss = train_one_epoch(model, loader, optimizer)
    print(f"Epoch {epoch}: loss {loss:.4f}, val accuracy {evaluate(model, x_val, y_val):.3f}")
