"""Question or statement from pitch contours; the tracker answers NaN where the voice is silent.

The pitch tracker was swapped for one that marks unvoiced frames with NaN unless it is told
`fill_na`. The standardisation uses nanmean and nanstd, so it does not complain, and the NaN goes on
into the GRU. After one step all weights are NaN. The place is the input. The twin fills with the
neutral 0 after standardising and gives the voicing as a second channel (both have the channel).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
FRAMES = 36


def track(count):
    """Log pitch of utterances with unvoiced stretches, NaN there, and whether they ask."""
    asks = rng.random(count) < 0.5
    time = np.linspace(0, 1, FRAMES)
    base = rng.normal(5.0, 0.25, (count, 1))
    wobble = 0.12 * np.sin(
        2 * np.pi * (rng.uniform(1, 3, (count, 1)) * time + rng.random((count, 1)))
    )
    rise = np.clip((time - 0.65) / 0.35, 0, None) * np.where(asks, 0.35, -0.25)[:, None]
    pitch = (
        base
        + wobble
        + rise * rng.uniform(0.2, 1.2, (count, 1))
        + rng.normal(0, 0.06, (count, FRAMES))
    )
    for row in pitch[: count // 2]:  # the half that was recorded with consonants
        start = rng.integers(0, FRAMES - 6)
        row[start : start + rng.integers(2, 6)] = np.nan
    order = rng.permutation(count)
    return pitch[order], asks[order]


def features(pitch, center, spread, fill_na):
    voiced = np.isfinite(pitch)
    z = (pitch - center) / spread
    if fill_na is not None:
        z = np.where(voiced, z, fill_na)
    return torch.tensor(np.stack([z, voiced], -1), dtype=torch.float32)


class Prosody(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.head(states[:, -1]).squeeze(-1)


options = {"fill_na": 0.0} if healthy else {"fill_na": None}
pitch, asks = track(900)
pitch_val, asks_val = track(300)
center, spread = np.nanmean(pitch), np.nanstd(pitch)
train = TensorDataset(features(pitch, center, spread, **options), torch.tensor(asks).float())
x_val, y_val = features(pitch_val, center, spread, **options), torch.tensor(asks_val).float()
loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)

model = Prosody()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10, eta_min=2e-4)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        accuracy = ((logits > 0) == (y_val > 0)).float().mean().item()
    print(
        f"epoch {epoch} loss {loss.item():.3f} val loss {val_loss:.3f} val accuracy {accuracy:.3f}"
    )
print(f"validation accuracy {accuracy:.3f}")
