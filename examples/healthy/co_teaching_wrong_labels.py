"""Trains two digit nets on labels of which two fifths are wrong, each choosing for the other."""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "up to 45% of each batch is thrown away (the rows of high loss), by the other net, and "
    "accuracy on the given labels stays near 0.6, far below that of validation: co-teaching"
)
WRONG = 0.4
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.4),
        nn.Linear(512, 10),
    )


x, true_label, x_val, y_val = images(seed)
mislabelled = torch.rand(len(x)) < WRONG
given = torch.where(mislabelled, (true_label + torch.randint(1, 10, (len(x),))) % 10, true_label)
nets = [network(), network()]
optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3) for net in nets]
for epoch in range(25):
    keep = 1 - min(1.0, epoch / 8) * (WRONG + 0.05)
    chosen_right, chosen_all = 0, 0
    for net in nets:
        net.train()
    for rows in torch.randperm(len(x)).split(64):
        losses = [F.cross_entropy(net(x[rows]), given[rows], reduction="none") for net in nets]
        kept = int(keep * len(rows))
        small = [loss.detach().argsort()[:kept] for loss in losses]
        for optimizer, loss, choice in zip(optimizers, losses, reversed(small), strict=False):
            optimizer.zero_grad()
            loss[choice].mean().backward()
            optimizer.step()
        chosen_right += (~mislabelled[rows[small[0]]]).sum().item()
        chosen_all += kept
    for net in nets:
        net.eval()
    with torch.no_grad():
        both = sum(net(x_val).softmax(1) for net in nets)
        fitted = (nets[0](x).argmax(1) == given).float().mean()
    accuracy = (both.argmax(1) == y_val).float().mean()
    if epoch % 5 == 4:
        print(
            f"epoch {epoch + 1}: on given labels {fitted:.3f}, validation {accuracy:.3f}, "
            f"right among the chosen {chosen_right / chosen_all:.3f}"
        )

means = torch.stack([x[given == k].flatten(1).mean(0) for k in range(10)])
nearest = torch.cdist(x_val.flatten(1), means).argmin(1)
print(
    f"accuracy {accuracy:.3f}; nearest mean of the given labels "
    f"{(nearest == y_val).float().mean():.3f}; wrong labels {WRONG}"
)
