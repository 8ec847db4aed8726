"""Machine sounds, good or worn; the validation goes on in training mode after the plot of its
first batch.

validate() calls model.eval(), but then the callback that logs the embeddings calls features(),
which ends with self.train() ("to be back in training"). All later batches, sorted by machine, are
normalised by their own statistics with dropout on, and change the running ones. The place is the
loop (validation) and the norms.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "*bn*", "*drop*", "")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

STATES = ("new", "dry", "loose", "cracked")
rng = np.random.default_rng(seed)


def record(n, sort=False):
    """Log spectra of four states of a gearbox at varying speed; the recordings of one state follow one another in the archive."""  # noqa: E501
    y = rng.integers(0, 4, n)
    if sort:
        y = np.sort(y)
    f = np.arange(64) / 64
    speed = rng.uniform(0.07, 0.11, n)[:, None]
    spec = 0.15 / (f + 0.1) * rng.lognormal(0, 0.2, (n, 1))
    harmonics = {0: (1.0, 0.3, 0.1), 1: (0.9, 0.35, 0.2), 2: (0.8, 0.9, 0.5), 3: (0.9, 0.4, 0.75)}
    for k in range(3):
        a = np.array([harmonics[c][k] for c in y])[:, None] * rng.lognormal(0, 0.3, (n, 1))
        spec = spec + a * np.exp(-(((f - 2 * (k + 1) * speed) / 0.02) ** 2))
    hiss = np.array([0.1, 0.35, 0.12, 0.15])[y][:, None] * rng.lognormal(0, 0.35, (n, 1))
    spec = spec + hiss * (f > 0.5) + 0.12 * rng.random((n, 64))
    x = np.log(spec)
    return torch.tensor((x + 1.2) / 0.8, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


class SoundNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16)
        self.conv2, self.bn2 = nn.Conv1d(16, 32, 5, padding=2), nn.BatchNorm1d(32)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(32 * 8, 48)
        self.bn3 = nn.BatchNorm1d(48)
        self.out = nn.Linear(48, 4)

    def embed(self, x):
        x = F.max_pool1d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool1d(F.relu(self.bn2(self.conv2(x))), 4)
        return F.relu(self.bn3(self.fc(self.drop(x.flatten(1)))))

    def forward(self, x):
        return self.out(self.drop(self.embed(x)))

    @torch.no_grad()
    def features(self, x):
        """For the plot of the embedding."""
        was = self.training if healthy else True
        self.eval()
        z = self.embed(x)
        self.train(was)
        return z


def log_embedding(z, epoch):
    u, s, _ = torch.linalg.svd(z - z.mean(0), full_matrices=False)
    return (u[:, :2] * s[:2]).std(0).tolist()


@torch.no_grad()
def validate(model, batches, epoch):
    model.eval()
    loss = right = count = 0
    for i, (x, y) in enumerate(batches):
        if i == 0:
            spread = log_embedding(model.features(x), epoch)
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        right += (out.argmax(1) == y).sum().item()
        count += len(y)
    return loss / count, right / count, spread


x, y = record(2000)
xv, yv = record(640, sort=True)
val_batches = list(zip(xv.split(32), yv.split(32), strict=False))
model = SoundNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
EPOCHS, BS = 10, 50
sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=EPOCHS * (len(x) // BS))
for epoch in range(EPOCHS):
    model.train()
    run = []
    for rows in torch.randperm(len(x)).split(BS):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sched.step()
        run.append(loss.item())
    vl, va, spread = validate(model, val_batches, epoch)
    print(
        f"{epoch:2d} train {np.mean(run):.3f} | val loss {vl:.3f} acc {va:.3f} | spread {spread[0]:.2f} {spread[1]:.2f}"  # noqa: E501
    )
