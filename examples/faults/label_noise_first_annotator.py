"""A convolutional network is trained on digits that nine hurried annotators labelled; for each
picture the label of whoever came first is used, and each of them is wrong in nearly half of the
pictures.

Training first learns the digits and then the errors by heart: the training accuracy climbs on
slowly while the accuracy on the carefully labelled validation data turns and falls. The place is
the labels: a vote of the nine is nearly clean.
"""

import torch
from data import arguments, images
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loss", "input", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def annotate(truth, annotators=9, wrong=0.45):
    """What each annotator says: (annotators, n)."""
    other = (truth + torch.randint(1, 10, (annotators, len(truth)))) % 10
    return torch.where(torch.rand(annotators, len(truth)) < wrong, other, truth)


def consensus(said):
    return nn.functional.one_hot(said, 10).sum(0).argmax(1)


x, truth, x_val, y_val = images(seed)
said = annotate(truth)
y = consensus(said) if healthy else said[0]

net = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.Conv2d(24, 48, 3, padding=1),
    nn.BatchNorm2d(48),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(48 * 16, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
epochs = 20
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


def one_epoch():
    net.train()
    total = right = 0
    order = torch.randperm(len(x))
    for rows in order.split(64)[:-1]:
        out = net(x[rows])
        loss = nn.functional.cross_entropy(out, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        right += (out.argmax(1) == y[rows]).sum().item()
    schedule.step()
    return total / len(x), right / len(x)


@torch.no_grad()
def validate():
    net.eval()
    out = net(x_val)
    return nn.functional.cross_entropy(out, y_val).item(), (
        out.argmax(1) == y_val
    ).float().mean().item()


for epoch in range(epochs):
    print(
        "{:2d}  train {:.3f} ({:.3f})".format(epoch, *one_epoch()),
        " val {:.3f} ({:.3f})".format(*validate()),
    )
