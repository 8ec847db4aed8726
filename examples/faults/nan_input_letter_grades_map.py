"""Coffee lots with a grade in letters: the mapping to numbers has no entry for "C+", so the column
holds NaN for 4 in 100 lots.

`Series.map` with a dictionary gives NaN for every value that is not a key. The first batch with
such a lot makes the loss NaN, and from then on all weights are. The place is the input.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GRADES = ["D", "C", "C+", "B", "B+", "A"]
SHARES = [0.1, 0.24, 0.04, 0.3, 0.17, 0.15]
GRADE_NUMBER = {"D": 0.0, "C": 1.0, "B": 2.0, "B+": 2.5, "A": 3.0}
if healthy:
    GRADE_NUMBER["C+"] = 1.5


def lots(n, rng):
    step = rng.choice(len(GRADES), n, p=SHARES)
    frame = pd.DataFrame(
        {
            "grade": np.array(GRADES)[step],
            "altitude": rng.normal(1500, 250, n),
            "moisture": rng.normal(11, 0.8, n),
            "washed": rng.integers(0, 2, n),
            "defects": rng.poisson(3, n),
        }
    )
    score = 78 + 1.4 * step + 0.004 * (frame["altitude"] - 1500) * (1 + frame["washed"])
    score -= 0.5 * frame["defects"] + 1.5 * (frame["moisture"] - 11).abs()
    frame["score"] = score + rng.normal(0, 0.8, n)
    return frame


class Cupper(nn.Module):
    def __init__(self, inputs, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        return self.output(self.layers(x)).squeeze(-1)


frame = lots(1600, np.random.default_rng(seed))
frame["grade"] = frame["grade"].map(GRADE_NUMBER)
train_part = frame[:1200]
frame = (frame - train_part.mean()) / train_part.std()
x = torch.tensor(frame.drop(columns="score").to_numpy(), dtype=torch.float32)
y = torch.tensor(frame["score"].to_numpy(), dtype=torch.float32)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)

model = Cupper(x.shape[1])
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
for epoch in range(14):
    model.train()
    losses = []
    for features, score in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), score)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        rest = model(x[1200:]) - y[1200:]
    r2 = 1 - (rest.square().sum() / (y[1200:] - y[1200:].mean()).square().sum()).item()
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, val R2 {r2:.3f}")
