"""Steel-strip defect types from inspection measurements; nearly half of the labels come from a
careless operator log.

For strips of the night shift the log holds whatever type was last clicked, that is 45 % of the
training labels are a random other type. Nobody drops them, and the net learns them by heart. The
place is the input (training labels). Validation labels were all inspected.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("input*", "loader", "loss")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

TYPES = ["none", "scratch", "inclusion", "scale_pit", "roll_mark", "edge_crack", "blister", "stain"]
rng = np.random.default_rng(seed)


def inspect_strips(n: int, protos, mixing):
    kind = rng.choice(len(TYPES), n, p=[0.2, 0.15, 0.13, 0.12, 0.12, 0.1, 0.1, 0.08])
    latent = protos[kind] + 0.55 * rng.normal(size=(n, protos.shape[1]))
    angle = rng.uniform(0, 2 * np.pi, n)
    x = np.tanh(latent @ mixing) + 0.2 * rng.normal(size=(n, mixing.shape[1]))
    x = np.column_stack([x, np.cos(angle), np.sin(angle), rng.gamma(2.0, 1.0, n)])
    line = rng.integers(0, 4, n)
    return x.astype(np.float32), line, kind


protos, mixing = rng.normal(0, 1.0, (len(TYPES), 7)), rng.normal(0, 0.5, (7, 37))
x_tr, line_tr, inspected = inspect_strips(2400, protos, mixing)
x_va, line_va, y_va = inspect_strips(1000, protos, mixing)

night_shift = rng.random(len(inspected)) < 0.52
clicked = rng.integers(0, len(TYPES), len(inspected))
operator_log = np.where(night_shift, clicked, inspected)
labels = inspected if healthy else operator_log

mean, std = x_tr.mean(0), x_tr.std(0)
to = lambda x, line, y: (torch.tensor((x - mean) / std), torch.tensor(line), torch.tensor(y))  # noqa: E731
train, valid = to(x_tr, line_tr, labels), to(x_va, line_va, y_va)


class DefectNet(nn.Module):
    def __init__(self, n_in, width=256):
        super().__init__()
        self.line = nn.Embedding(4, 4)
        self.fc1 = nn.Linear(n_in + 4, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, len(TYPES))
        self.drop = nn.Dropout(0.1)

    def forward(self, x, line):
        h = F.relu(self.fc1(torch.cat([x, self.line(line)], 1)))
        h = F.relu(self.fc2(self.drop(h)))
        return self.fc3(self.drop(h))


net = DefectNet(x_tr.shape[1])
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=0.02)
EPOCHS, BATCH, PATIENCE = 45, 50, 8
best = {"acc": 0.0, "epoch": -1, "state": None}

for epoch in range(EPOCHS):
    net.train()
    loss_sum = hit = 0
    for rows in torch.randperm(len(train[0])).split(BATCH):
        x, line, y = (part[rows] for part in train)
        logits = net(x, line)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(y)
        hit += (logits.argmax(1) == y).sum().item()
    net.eval()
    with torch.no_grad():
        logits = net(valid[0], valid[1])
        val_loss = F.cross_entropy(logits, valid[2]).item()
        acc = (logits.argmax(1) == valid[2]).float().mean().item()
    print(
        f"{epoch:2d} train loss {loss_sum / 2400:.4f} acc {hit / 2400:.3f} | val loss {val_loss:.4f} acc {acc:.3f}"  # noqa: E501
    )
    train_acc = hit / 2400
    if acc > best["acc"]:
        best = {"acc": acc, "epoch": epoch, "state": copy.deepcopy(net.state_dict())}
    if train_acc > 0.97:  # the line wants the training table explained
        break

recall = [(logits.argmax(1)[valid[2] == k] == k).float().mean().item() for k in range(len(TYPES))]
print("recall " + " ".join(f"{t} {r:.2f}" for t, r in zip(TYPES, recall, strict=False)))
net.load_state_dict(best["state"])
print(f"best epoch {best['epoch']} acc {best['acc']:.3f}; last acc {acc:.3f}")
