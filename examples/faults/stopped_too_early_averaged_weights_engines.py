"""A CNN for engine sounds stops after three checks, five steps apart, without a better score.

The checks look at the averaged weights, which lag behind, so their accuracy stands at chance for
the first dozens of steps and the patience of fifteen steps runs out before anything is learned.
The place is the loop: its early stopping.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CHECK_EVERY = 5
PATIENCE = 50 if healthy else 3
MAX_STEPS, BATCH, DECAY, LEAST_GAIN = 600, 32, 0.98, 0.02


def engine_sounds(n, rng):
    """Four faults of an engine: each adds its own overtone and knock to a running speed."""
    label = rng.integers(0, 4, n)
    time = np.arange(128) / 128
    speed = rng.uniform(5, 7, n)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 2))
    overtone = np.array([2.0, 3.0, 4.5, 3.0])[label][:, None]
    sound = np.sin(2 * np.pi * speed * time + phase[:, :1])
    sound += 0.7 * np.sin(2 * np.pi * speed * overtone * time + phase[:, 1:])
    knocks = np.maximum(0, np.sin(2 * np.pi * speed / 2 * time + phase[:, :1])) ** 12
    sound += np.where(label == 3, 2.0, 0.0)[:, None] * knocks
    sound += rng.normal(0, 0.5, sound.shape)
    return sound.astype(np.float32)[:, None], label


def convolutions():
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2, padding=4), nn.ReLU(),
        nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.ReLU(),
        nn.Conv1d(32, 32, 5, stride=2, padding=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 4),
    )  # fmt: skip


rng = np.random.default_rng(seed)
sounds, labels = engine_sounds(1200, rng)
sounds = torch.tensor((sounds - sounds[:800].mean()) / sounds[:800].std())
labels = torch.tensor(labels)

model = convolutions()
averaged = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


@torch.no_grad()
def update_average():
    for slow, fast in zip(averaged.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1 - DECAY)


@torch.no_grad()
def validate():
    averaged.eval()
    logits = averaged(sounds[800:])
    loss = F.cross_entropy(logits, labels[800:]).item()
    return loss, (logits.argmax(1) == labels[800:]).float().mean().item()


best = {"accuracy": 0.0, "step": 0}
for step in range(1, MAX_STEPS + 1):
    rows = torch.randperm(800)[:BATCH]
    loss = F.cross_entropy(model(sounds[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_average()
    if step % CHECK_EVERY:
        continue
    val_loss, accuracy = validate()
    if accuracy > best["accuracy"] + LEAST_GAIN:
        best = {"accuracy": accuracy, "step": step}
    if step % 30 == 0 or not healthy:
        print(f"{step:4d} train {loss.item():.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
    if step - best["step"] >= PATIENCE * CHECK_EVERY:
        print("no better score: stopping at step", step)
        break
print("averaged weights: loss {:.3f} accuracy {:.3f}".format(*validate()))
