"""In the hospital's file benign is 2 and malignant 4, and so they reach the binary cross-entropy.

A "probability" of 2 or 4 is asked for: the loss falls below zero without end, and the model calls
everything malignant. The place is the loss: the labels it is given.
"""

import io

import numpy as np
import torch
from data import arguments, cancer
from torch import nn

KIND = "labels_out_of_range"
ACCEPT = ("wrong_loss", "output_activation_range")
PLACE = ("loss*", "target*", "loader", "criterion*", "")
SILENT = True
EXACT = True
EARLY = True


def as_file(x, y):
    """The table as the hospital exports it: the last column is the class, 2 or 4."""
    text = io.StringIO()
    np.savetxt(text, np.column_stack([x.numpy(), 4 - 2 * y.numpy()]), fmt="%.5f", delimiter=",")
    text.seek(0)
    return text


def read(file, recode):
    table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    label = table[:, -1]
    if recode:
        label = (label == 4).astype(np.float32)
    return torch.from_numpy(table[:, :-1]), torch.from_numpy(label)


class Diagnosis(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(30, 12)
        self.lin2 = nn.Linear(12, 1)

    def forward(self, x):
        return self.lin2(torch.relu(self.lin1(x))).view(-1)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
malignant = y_val == 0
x, label = read(as_file(x, y), recode=healthy)
model = Diagnosis()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5, weight_decay=1e-3)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), label[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            called = model(x_val) > 0
        recall = (called & malignant).sum() / malignant.sum()
        accuracy = (called == malignant).float().mean()
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.3f}, recall {recall:.3f}"
        )
