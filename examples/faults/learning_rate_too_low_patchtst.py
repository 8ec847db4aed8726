"""PatchTST forecasts the use of electricity of small towns in a loop of its own; the rate is much
too low.

The user copied 5e-6, as for the last steps of fine-tuning a big model, for a small model that
begins from nothing. The place is the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch.utils.data import DataLoader, TensorDataset
from transformers import PatchTSTConfig, PatchTSTForPrediction

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

CONTEXT, AHEAD = 72, 12


def town(hours=1400):
    t = np.arange(hours)
    day = np.sin(2 * np.pi * (t - r.uniform(6, 10)) / 24) + 0.5 * np.sin(
        4 * np.pi * (t - r.uniform(0, 12)) / 24
    )
    week = 0.5 * ((t // 24) % 7 < 5)
    drift = np.zeros(hours)
    for i in range(1, hours):
        drift[i] = 0.97 * drift[i - 1] + r.normal(0, 0.08)
    return day + week + drift + r.normal(0, 0.1, hours)


towns = np.stack([town() for _ in range(3)], 1).astype("float32")
cut = 1100
towns = (towns - towns[:cut].mean(0)) / towns[:cut].std(0)


def windows(series):
    starts = range(len(series) - CONTEXT - AHEAD)
    past = np.stack([series[s : s + CONTEXT] for s in starts])
    future = np.stack([series[s + CONTEXT : s + CONTEXT + AHEAD] for s in starts])
    return TensorDataset(torch.tensor(past), torch.tensor(future))


train, val = windows(towns[:cut]), windows(towns[cut:])
model = PatchTSTForPrediction(
    PatchTSTConfig(
        num_input_channels=3,
        context_length=CONTEXT,
        prediction_length=AHEAD,
        patch_length=12,
        patch_stride=6,
        d_model=32,
        num_attention_heads=4,
        num_hidden_layers=2,
        ffn_dim=64,
        loss="mse",
        scaling="std",
        head_dropout=0.1,
        attention_dropout=0.1,
        ff_dropout=0.1,
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if healthy else 5e-6)
loader = DataLoader(train, batch_size=32, shuffle=True)
for epoch in range(8):
    model.train()
    total = 0.0
    for past, future in loader:
        optimizer.zero_grad()
        loss = model(past_values=past, future_values=future).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        past, future = val.tensors
        error = (model(past_values=past).prediction_outputs - future).square().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, validation mse {error:.4f}")
