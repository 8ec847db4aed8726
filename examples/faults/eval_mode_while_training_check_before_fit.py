"""A deep convolutional net with batch norm reads digits. Before the training a sanity check runs
the evaluation once, and `train()` is called when the model is made, not in the loop.

The evaluation leaves the model in evaluation mode: all batch norms use the means and variances they
were born with and normalise nothing, and the dropout is off. The place is the loop.
"""

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def conv(i, o, stride=1):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
    )


def build(c=16):
    layers = [conv(1, c), conv(c, c), conv(c, c), conv(c, 2 * c, 2)]
    layers += [conv(2 * c, 2 * c) for _ in range(6)]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(2 * c, 10)
    ).train()


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    out = model(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def train_epoch(model, loader, optimizer):
    if healthy:
        model.train()
    total = 0.0
    for a, b in loader:
        loss = F.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    return total


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
print("before: val {:.3f} accuracy {:.3f}".format(*evaluate(model, x_val, y_val)))
for epoch in range(6):
    train = train_epoch(model, loader, optimizer)
    val, accuracy = evaluate(model, x_val, y_val)
    print(f"epoch {epoch}: train {train:.3f} val {val:.3f} accuracy {accuracy:.3f}")
