"""Forest fire tomorrow, yes or no: a sigmoid in the model, and another one in the loss.

The model ends in `nn.Sigmoid()`, so that it "gives probabilities", and was trained with BCELoss;
then someone moved to BCEWithLogitsLoss because it is said to be more stable. The second sigmoid
sees values between 0 and 1 only. The place is the output, the loss.
The twin's model gives logits.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import brier_score_loss, log_loss
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("output*", "loss*", "4", "model.4")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 13)

N = 3600
temp = rng.normal(22, 7, N)
humid = np.clip(70 - 1.4 * (temp - 15) + rng.normal(0, 12, N), 8, 100)
wind = rng.gamma(2.5, 1.6, N)
dry = rng.exponential(6, N)
people = rng.random(N)
danger = 0.09 * (temp - 22) - 0.05 * (humid - 60) + 0.25 * (wind - 4) + 0.22 * (dry - 6)
danger += 1.2 * people * (temp > 24)
fire = (rng.random(N) < 1 / (1 + np.exp(-1.5 * danger + 0.4))).astype(np.float32)
X = np.column_stack([temp, humid, wind, np.sqrt(dry), people]).astype(np.float32)
X = (X - X.mean(0)) / X.std(0)
X, fire = torch.from_numpy(X), torch.from_numpy(fire)[:, None]
train, val = slice(0, 2800), slice(2800, N)

layers = [nn.Linear(5, 32), nn.ELU(), nn.Dropout(0.1), nn.Linear(32, 1)]
if not healthy:
    layers.append(nn.Sigmoid())
model = nn.Sequential(*layers)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    epoch_loss = []
    for idx in np.array_split(rng.permutation(2800), 56):
        optimizer.zero_grad()
        loss = criterion(model(X[train][idx]), fire[train][idx])
        loss.backward()
        optimizer.step()
        epoch_loss.append(loss.item())
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            p = torch.sigmoid(model(X[val])).numpy().ravel().astype(float)
        truth = fire[val].numpy().ravel()
        print(
            f"epoch {epoch}: loss {np.mean(epoch_loss):.3f}"
            f" val log loss {log_loss(truth, p):.3f} Brier {brier_score_loss(truth, p):.3f}"
            f" accuracy {((p > 0.5) == truth).mean():.3f}"
        )
