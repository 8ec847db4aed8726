"""Crops on satellite-like spectra, labelled by five annotators; the first one's vote is taken as
the truth.

Each patch has five votes; the author takes votes[:, 0] instead of the majority, and the first
annotator clicked at random for nearly half of the patches. The network learns the wrong labels by
heart: the training loss goes on falling while the validation (field survey, true labels) gets
worse. The place is the labels (loader, loss).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "loss", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CLASSES, BANDS, DATES = 6, 5, 8
rng = np.random.default_rng(seed + 31)
peak = rng.uniform(1, 7, CLASSES)
width = rng.uniform(1.0, 2.2, CLASSES)
colour = rng.normal(0, 1, (CLASSES, BANDS))


def patches(n):
    kind = rng.integers(0, CLASSES, n)
    t = np.arange(DATES)
    growth = np.exp(
        -0.5 * ((t - peak[kind, None] - rng.normal(0, 0.6, (n, 1))) / width[kind, None]) ** 2
    )
    x = growth[:, None, :] * (1 + 0.6 * colour[kind])[:, :, None]
    x = x + rng.normal(0, 0.25, (n, BANDS, 1)) + rng.normal(0, 0.5, x.shape)
    return torch.tensor(x, dtype=torch.float32), kind


def annotate(kind, error_rates=(0.55, 0.08, 0.12, 0.06, 0.10)):
    votes = np.repeat(kind[:, None], len(error_rates), 1)
    for a, rate in enumerate(error_rates):
        wrong = rng.random(len(kind)) < rate
        votes[wrong, a] = rng.integers(0, CLASSES, wrong.sum())
    return votes


def majority(votes):
    return np.array([np.bincount(row, minlength=CLASSES).argmax() for row in votes])


x_train, truth = patches(1500)
x_val, y_val = patches(800)
mean, std = x_train.mean((0, 2), keepdim=True), x_train.std((0, 2), keepdim=True)
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std
votes = annotate(truth)
y_train = torch.tensor(majority(votes) if healthy else votes[:, 0])
y_val = torch.tensor(y_val)


class CropNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(BANDS, 48, 3, padding=1)
        self.conv2 = nn.Conv1d(48, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * DATES // 2, 96)
        self.out = nn.Linear(96, CLASSES)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        x = F.dropout(F.relu(self.fc1(x.flatten(1))), 0.2, self.training)
        return self.out(x)


net = CropNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(1, 16):
    net.train()
    losses, right = [], 0
    for i in torch.randperm(len(x_train)).split(32):
        out = net(x_train[i])
        loss = F.cross_entropy(out, y_train[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        right += (out.argmax(1) == y_train[i]).sum().item()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        print(
            f"epoch {epoch:2d} loss {np.mean(losses):.4f} acc {right / len(x_train):.4f}"
            f" val_loss {F.cross_entropy(out, y_val):.4f} val_acc {(out.argmax(1) == y_val).float().mean():.4f}"  # noqa: E501
        )
