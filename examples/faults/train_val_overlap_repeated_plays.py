"""Will a listener skip the song? A log of plays, split at random by play, though most listeners
hear the same songs many times: almost all pairs of the validation part were trained on.

Validation flatters: of songs a listener hears for the first time far less is known. The place is
the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, SONGS, PAIRS, RANK = 80, 90, 5000, 2
rng = np.random.default_rng(250 + seed)

p, q = rng.normal(0, 1, (USERS, RANK)), rng.normal(0, 1, (SONGS, RANK))
pairs = rng.choice(USERS * SONGS, PAIRS, replace=False)
user, song = pairs // SONGS, pairs % SONGS
taste = (p[user] * q[song]).sum(1) / np.sqrt(RANK) + rng.normal(0, 0.75, PAIRS)
times = 1 + rng.geometric(0.3, PAIRS)
log = np.repeat(np.arange(PAIRS), times)
skipped = rng.random(len(log)) < 1 / (1 + np.exp(2.5 * taste[log]))
plays = np.stack([user[log], song[log], skipped], 1)

if healthy:  # a pair with all its plays is in one part
    held_out = rng.random(PAIRS) < 0.25
    in_val = held_out[log]
else:
    in_val = rng.random(len(log)) < 0.25
train, val = (torch.tensor(plays[rows]) for rows in (~in_val, in_val))


class Factors(nn.Module):
    def __init__(self, rank=3):
        super().__init__()
        self.user, self.song = nn.Embedding(USERS, rank), nn.Embedding(SONGS, rank)
        self.user_bias, self.song_bias = nn.Embedding(USERS, 1), nn.Embedding(SONGS, 1)
        for table in (self.user, self.song):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.song_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, s):
        bias = self.user_bias(u) + self.song_bias(s)
        return (self.user(u) * self.song(s)).sum(1) + bias.squeeze(1)


model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(
    TensorDataset(train[:, 0], train[:, 1], train[:, 2].float()), batch_size=256, shuffle=True
)
for epoch in range(10):
    model.train()
    total = 0.0
    for u, s, y in loader:
        logits = model(u, s)
        loss = bce(logits, y) + 2e-2 * (model.user(u).pow(2) + model.song(s).pow(2)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(val[:, 0], val[:, 1])
        v = bce(out, val[:, 2].float()).item()
        acc = ((out > 0) == (val[:, 2] > 0)).float().mean().item()
    if epoch % 2:
        print(f"{epoch}: {total / len(loader):.3f}, validation {v:.3f}, accuracy {acc:.3f}")
fresh = np.setdiff1d(np.arange(USERS * SONGS), pairs)[::5]
u, s = fresh // SONGS, fresh % SONGS
truth = (p[u] * q[s]).sum(1) / np.sqrt(RANK) + rng.normal(0, 0.75, len(u))
with torch.no_grad():
    out = model(torch.tensor(u), torch.tensor(s)).numpy()
label = rng.random(len(u)) < 1 / (1 + np.exp(2.5 * truth))
print(f"pairs never played: accuracy {((out > 0) == label).mean():.3f}")
