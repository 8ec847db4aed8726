"""Cultivars of wine from raw chemistry: the scaled frame is made and then not used.

`preprocess` works on a copy and returns it, but the caller keeps the frame it had, in the belief
that scaling is done in place. Proline (up to 1,700) drowns twelve columns of order one. The place
is the input. The twin takes what the function returns.
"""

import numpy as np
import torch
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Wines(Dataset):
    def __init__(self, features, cultivar):
        self.features = features.astype(np.float32)
        self.cultivar = cultivar

    def __len__(self):
        return len(self.cultivar)

    def __getitem__(self, i):
        return torch.from_numpy(self.features[i]), self.cultivar[i]


def preprocess(features, reference):
    scaled = features.copy()
    for column in range(features.shape[1]):
        scaled[:, column] -= reference[:, column].mean()
        scaled[:, column] /= reference[:, column].std()
    return scaled


x, y, x_val, y_val = (part.numpy() for part in wine(seed, raw=True))
if healthy:
    x, x_val = preprocess(x, x), preprocess(x_val, x)
else:
    preprocess(x, x), preprocess(x_val, x)

train = DataLoader(Wines(x, y), batch_size=16, shuffle=True, drop_last=True)
val = DataLoader(Wines(x_val, y_val), batch_size=45)
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(25):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val)
    print(f"epoch {epoch:2d} loss {total:.3f} val accuracy {hits / len(y_val):.3f}")
