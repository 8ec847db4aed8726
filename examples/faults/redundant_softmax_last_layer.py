"""A CNN with nn.Softmax as its last layer and CrossEntropyLoss.

CrossEntropyLoss takes the softmax itself, so it is taken twice: the loss cannot fall below 1.46 and
the gradients are small; some digits are never found. The place is the softmax at the end ("8"). The
twin ends with the linear layer.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("8", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
layers = [
    nn.Conv2d(1, 10, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(10, 20, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(80, 10),
]
if not healthy:
    layers.append(nn.Softmax(dim=1))
model = nn.Sequential(*layers)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def report(step, loss):
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    right = out.argmax(1) == y_val
    worst = min(right[y_val == c].float().mean().item() for c in range(10))
    print(
        f"step {step}: train {loss:.3f} val {loss_fn(out, y_val):.3f} accuracy "
        f"{right.float().mean():.3f} worst class {worst:.2f}"
    )
    model.train()


model.train()
for step, (xb, yb) in enumerate(batches(x, y, size=40, steps=400, seed=seed), 1):
    loss = loss_fn(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        report(step, loss.item())
