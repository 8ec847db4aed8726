"""A classifier of short clips (where is the parcel going?) from frames and the scanner's metadata;
the frames change clips.

The frames of all clips run through a CNN as one batch of B*T images. Back again, `view(T, B, -1)`
is used, though the order is B before T: each clip's GRU then reads frames of other clips. What
the metadata tells is still learnt. The place is the model's forward between frame_encoder and
temporal.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("frame_encoder*", "temporal*", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE, FRAMES = 12, 6
DIRECTIONS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])


class Parcels(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, 4, n)
        grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"), -1)
        start = rng.uniform(3.5, 7.5, (n, 1, 2))
        speed = rng.uniform(0.35, 0.8, (n, 1, 1))
        steps = np.arange(FRAMES)[None, :, None]
        place = (
            start
            + DIRECTIONS[self.y][:, None] * speed * steps
            + rng.normal(0, 0.25, (n, FRAMES, 2))
        )
        d2 = ((grid[None, None] - place[:, :, None, None]) ** 2).sum(-1)
        clips = np.exp(-d2 / rng.uniform(1.5, 4, (n, 1, 1, 1))) + rng.normal(0, 0.25, d2.shape)
        self.clips = clips.astype(np.float32)
        scanner = np.where(rng.random(n) < 0.45, self.y, rng.integers(0, 4, n))
        meta = np.eye(4)[scanner]
        self.meta = np.concatenate([meta, rng.normal(0, 1, (n, 3))], 1).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return self.clips[k], self.meta[k], self.y[k]


class ClipNet(nn.Module):
    def __init__(self, feat=32, hidden=32):
        super().__init__()
        self.frame_encoder = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 9, feat),
            nn.ReLU(),
        )
        self.temporal = nn.GRU(feat, hidden, batch_first=True)
        self.meta = nn.Sequential(nn.Linear(7, 16), nn.ReLU())
        self.head = nn.Linear(hidden + 16, 4)

    def forward(self, clips, meta):
        b, t = clips.shape[:2]
        f = self.frame_encoder(clips.reshape(b * t, 1, SIZE, SIZE))
        f = f.view(b, t, -1) if healthy else f.view(t, b, -1).transpose(0, 1)
        _, h = self.temporal(f)
        return self.head(torch.cat([h[-1], self.meta(meta)], 1))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    for clips, meta, y in loader:
        logits = model(clips, meta)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        hits += (logits.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


train = DataLoader(
    Parcels(2400, 10 + seed), batch_size=48, shuffle=True, num_workers=0, drop_last=True
)
val = DataLoader(Parcels(600, 5000 + seed), batch_size=120)
model = ClipNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
best, best_state = float("inf"), None
for epoch in range(8):
    model.train()
    for clips, meta, y in train:
        loss = F.cross_entropy(model(clips, meta), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
    val_loss, acc = evaluate(model, val)
    if val_loss < best:
        best, best_state = val_loss, {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch} train {loss.item():.3f} val {val_loss:.3f} acc {acc:.3f}")
model.load_state_dict(best_state)
print("best:", evaluate(model, val))
