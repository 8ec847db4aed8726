"""A forecaster scales each window by its own past; windows of a resting pump make its loss leap.

The person took reversible instance normalisation from a paper: what is to be predicted is divided
by the deviation of the window before it, plus 1e-5. When a pump has rested through the whole
window and then starts, the scaled target is near a hundred. The place is the input: the targets.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_spike"
ACCEPT = ("division_by_zero_norm", "exploding_gradient", "target_not_normalized")
PLACE = ("input", "loss", "labels", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PAST, AHEAD = 36, 6
MIN_SCALE = 1.0 if healthy else 1e-5


def pump_pressure(hours, rng):
    """Two rhythms and slow noise; now and then the pump rests and shows sensor noise only."""
    t = np.arange(hours)
    drift = np.convolve(rng.normal(0, 1, hours + 24), np.ones(25) / 25, "valid")
    y = 2 + np.sin(t / 3.8) + 0.6 * np.sin(t / 1.7 + 1) + drift + rng.normal(0, 0.08, hours)
    start = 200
    while start < hours - 60:
        rest = int(rng.integers(38, 42))
        y[start : start + rest] = rng.normal(0, 0.03, rest)
        start += int(rng.integers(350, 600))
    return y.astype(np.float32)


class Windows(Dataset):
    def __init__(self, series, step):
        self.series = torch.from_numpy(series)
        self.starts = list(range(0, len(series) - PAST - AHEAD, step))

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        start = self.starts[i]
        past = self.series[start : start + PAST]
        ahead = self.series[start + PAST : start + PAST + AHEAD]
        level, scale = past.mean(), past.std() + MIN_SCALE
        return {
            "past": (past - level) / scale,
            "target": (ahead - level) / scale,
            "ahead": ahead,
            "level": level,
            "scale": scale,
        }


class Forecaster(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 5, padding=2)
        self.mix = nn.Sequential(
            nn.Linear(16 * PAST // 2, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, AHEAD)
        )

    def forward(self, past):
        h = torch.relu(self.conv(past.unsqueeze(1)))
        return self.mix(nn.functional.avg_pool1d(h, 2).flatten(1))


def validate(model, loader):
    model.eval()
    errors = []
    with torch.no_grad():
        for batch in loader:
            forecast = model(batch["past"]) * batch["scale"][:, None] + batch["level"][:, None]
            errors.append((forecast - batch["ahead"]).abs().mean(1))
    model.train()
    return torch.cat(errors).mean().item()


def main():
    rng = np.random.default_rng(seed)
    train = DataLoader(
        Windows(pump_pressure(9000, rng), 3), batch_size=64, shuffle=True, drop_last=True
    )
    val = DataLoader(Windows(pump_pressure(3000, rng), 3), batch_size=256)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    for epoch in range(14):
        losses = []
        for batch in train:
            loss = ((model(batch["past"]) - batch["target"]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            losses.append(loss.item())
        middle, worst = float(np.median(losses)), max(losses)
        print(
            f"epoch {epoch}: median loss {middle:.3f}, worst {worst:.3g}, "
            f"val error {validate(model, val):.3f} bar"
        )


main()
