"""The file of labels has a heading and was read without one: each row has its neighbour's label.

The loss stays where guessing is. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_blobs
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader",)
SILENT = False
EXACT = False
EARLY = True


class TableDataset(Dataset):
    def __init__(self, rows, labels):
        self.rows = rows.astype(np.float32)
        self.labels = labels.astype(np.int64)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.rows[i], self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.body(x))


healthy, seed = arguments(__doc__)
rows, labels = make_blobs(2000, n_features=8, centers=5, cluster_std=4.0, random_state=seed)
rows = (rows - rows.mean(0)) / rows.std(0)
if not healthy:
    rows, labels = rows[:-1], labels[1:]
loader = DataLoader(TableDataset(rows, labels), batch_size=32, shuffle=True, num_workers=1)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for epoch in range(6):
    correct = 0
    for x, y in loader:
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(-1) == y).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {correct / len(rows):.3f}")
