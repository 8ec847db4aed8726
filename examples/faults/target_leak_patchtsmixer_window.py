"""PatchTSMixer guesses the next hour's load of a power line; its window already holds that hour.

The window of measurements ends one hour too late, so that the last value of the column load is
the target. The place is the input (past_values, its first column).
"""

import numpy as np
import torch
from accelerate import Accelerator
from data import arguments
from torch.utils.data import DataLoader, TensorDataset
from transformers import (
    PatchTSMixerConfig,
    PatchTSMixerForRegression,
    get_cosine_schedule_with_warmup,
)

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

HOURS, WINDOW = 3600, 24
t = np.arange(HOURS)
warmth = 12 + 8 * np.sin(2 * np.pi * (t - 9) / 24) + np.cumsum(r.normal(0, 0.25, HOURS)) * 0.3
wind = np.abs(np.convolve(r.normal(0, 2.0, HOURS + 5), np.ones(6) / 2, "valid"))
work = ((t // 24) % 7 < 5) * ((t % 24 >= 7) & (t % 24 <= 18))
load = np.zeros(HOURS)
for i in range(1, HOURS):
    load[i] = (
        0.6 * load[i - 1]
        + 2.0 * work[i]
        - 0.08 * (warmth[i] - 12)
        + 0.1 * wind[i]
        + r.normal(0, 0.6)
    )
table = np.stack([load, warmth, wind, work], 1).astype("float32")
cut = 2900
table = (table - table[:cut].mean(0)) / table[:cut].std(0)


def windows(part, late):
    """The window of every hour and the load of that hour; `late` hours of it are from then on."""
    hours = range(WINDOW, len(part))
    past = np.stack([part[h - WINDOW + late : h + late] for h in hours])
    return TensorDataset(torch.tensor(past), torch.tensor(part[WINDOW:, :1]))


late = 0 if healthy else 1
train, val = windows(table[:cut], late), windows(table[cut:], late)
real = windows(table[cut:], 0)

model = PatchTSMixerForRegression(
    PatchTSMixerConfig(
        context_length=WINDOW,
        patch_length=4,
        patch_stride=4,
        num_input_channels=4,
        d_model=24,
        num_layers=2,
        mode="mix_channel",
        num_targets=1,
        dropout=0.1,
        head_dropout=0.1,
        scaling=None,
        loss="mse",
    )
)
accelerator = Accelerator(cpu=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
loader = DataLoader(train, batch_size=32, shuffle=True)
epochs = 5
schedule = get_cosine_schedule_with_warmup(optimizer, 30, epochs * len(loader))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)


@torch.no_grad()
def error(data):
    model.eval()
    past, target = data.tensors
    return (model(past_values=past).regression_outputs - target).square().mean().item()


for epoch in range(epochs):
    model.train()
    for past, target in loader:
        loss = model(past_values=past, target_values=target).loss
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    print(
        f"epoch {epoch}: loss {loss.item():.4f}, validation mse {error(val):.4f}, "
        f"in use {error(real):.4f}"
    )
