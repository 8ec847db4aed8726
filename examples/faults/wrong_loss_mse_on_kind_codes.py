"""Kinds of wear of cutting tools, four of them, learnt as a number with MSE.

The script was copied from a regression; the labels 0 to 3 are the codes of unordered kinds of wear
(by name in the alphabet), the head has one unit, `criterion = nn.MSELoss()`, and accuracy is taken
from the rounded output. Between kind 0 and kind 3 the net answers "1.5". The place is the loss.
The twin has four logits and the cross entropy.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss", "head", "labels", "net.4")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
KINDS = ("abrasion", "chipping", "cratering", "flank")


class Tools(Dataset):
    def __init__(self, n, rng):
        self.kind = rng.integers(0, 4, n)
        angle = self.kind * 2.4 + rng.normal(0, 0.35, n)
        force = np.stack([np.cos(angle), np.sin(angle)], 1) * rng.normal(1.5, 0.3, (n, 1))
        sound = rng.normal(0, 1, (n, 6))
        sound[:, 0] += (self.kind % 2) * 0.8
        self.x = np.concatenate([force, sound], 1).astype(np.float32)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        kind = int(self.kind[i])
        return self.x[i], kind if healthy else np.float32(kind)


class WearNet(nn.Module):
    def __init__(self, features=8, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, len(KINDS) if healthy else 1),
        )

    def forward(self, x):
        return self.net(x) if healthy else self.net(x).squeeze(1)


def predict(out):
    return out.argmax(1) if healthy else out.round().clamp(0, len(KINDS) - 1)


rng = np.random.default_rng(seed)
train = DataLoader(Tools(1600, rng), batch_size=50, shuffle=True)
val = DataLoader(Tools(400, rng), batch_size=400)
model = WearNet()
criterion = nn.CrossEntropyLoss() if healthy else nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for x, kind in train:
        loss = criterion(model(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        for x, kind in val:
            out = model(x)
    accuracy = (predict(out) == kind).float().mean()
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {criterion(out, kind):.3f} accuracy {accuracy:.3f}"
    )
