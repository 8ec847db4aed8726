"""Accelerometer windows whose data set standardises each window when it is read, in place.

`window -= mean` works on the array that the data set keeps, of which `window` is a slice: in the
second epoch the windows are standardised a second time, in the third one a third time, until
nothing of them is left. So it is with the validation part, which the same class reads. The place is
the loader. The twin writes `window = (window - mean) / deviation`.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
STEPS, KINDS = 40, 4


def recordings(count, rng):
    kinds = rng.integers(0, KINDS, count)
    t = np.arange(STEPS)[None] / STEPS
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    swing = np.sin(2 * np.pi * (1.5 + kinds[:, None]) * t + phase)
    return (9.8 + 3 * swing + rng.normal(0, 1.2, (count, STEPS))).astype(np.float32), kinds


class Windows(Dataset):
    def __init__(self, values, kinds, mean, deviation):
        self.values, self.kinds = values, kinds
        self.mean, self.deviation = mean, deviation

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        window = self.values[i]
        if healthy:
            window = (window - self.mean) / self.deviation
        else:
            window -= self.mean
            window /= self.deviation
        return torch.from_numpy(window)[None], self.kinds[i]


rng = np.random.default_rng(seed)
values, kinds = recordings(900, rng)
values_val, kinds_val = recordings(300, rng)
scale = (values.mean(), values.std())
train = DataLoader(Windows(values, kinds, *scale), batch_size=36, shuffle=True)
val = DataLoader(Windows(values_val, kinds_val, *scale), batch_size=100)

model = nn.Sequential(
    nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(), nn.Conv1d(16, 24, 5, stride=2), nn.ReLU(),
    nn.Flatten(), nn.Linear(24 * 6, KINDS),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for windows, labels in train:
        loss = nn.functional.cross_entropy(model(windows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        said = torch.cat([model(windows).argmax(1) for windows, _ in val])
        val_loss = sum(nn.functional.cross_entropy(model(w), k).item() for w, k in val) / len(val)
    right = (said.numpy() == kinds_val).mean()
    print(
        f"epoch {epoch + 1}: loss {loss.item():.3f}, validation {val_loss:.3f}, {right:.2f} right"
    )
