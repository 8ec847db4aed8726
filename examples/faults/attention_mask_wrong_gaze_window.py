"""Gaze is tagged by attention within a window, but the mask blocks the window and leaves the rest.

nn.MultiheadAttention leaves out what is True; "distance <= 3" therefore hides the samples of which
the drift is the mean, and shows only those that have nothing to do with it. The place is the
attention and its attn_mask.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("layers*", "*attention*", "model", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH, WINDOW, DIRECTIONS = 64, 3, 3


def recordings(n, rng):
    """Jerks of the eyes, and in which of three directions they drift on average around a time."""
    velocity = rng.normal(0, 1, (n, LENGTH, 2))
    place = np.arange(LENGTH)
    near = np.abs(place[:, None] - place[None, :]) <= WINDOW
    drift = (near / near.sum(1, keepdims=True)) @ velocity + rng.normal(0, 0.03, velocity.shape)
    angle = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    direction = (drift @ np.stack([np.cos(angle), np.sin(angle)])).argmax(2)
    return torch.tensor(velocity, dtype=torch.float32), torch.tensor(direction)


class WindowLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        place = torch.arange(LENGTH)
        near = (place[:, None] - place[None, :]).abs() <= WINDOW
        self.register_buffer("mask", ~near if healthy else near)

    def forward(self, hidden):
        seen = self.norms[0](hidden)
        seen, _ = self.attention(seen, seen, seen, attn_mask=self.mask, need_weights=False)
        hidden = hidden + seen
        return hidden + self.mlp(self.norms[1](hidden))


class GazeTagger(nn.Module):
    def __init__(self, width=32, depth=1):
        super().__init__()
        self.lift = nn.Linear(2, width)
        self.layers = nn.ModuleList(WindowLayer(width) for _ in range(depth))
        self.head = nn.Linear(width, DIRECTIONS)

    def forward(self, velocity):
        hidden = self.lift(velocity)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


class Trainer:
    def __init__(self, model, train, validation, learning_rate):
        self.model, self.train, self.validation = model, train, validation
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

    def run_epoch(self, size):
        self.model.train()
        losses = []
        for rows in torch.randperm(len(self.train[0])).split(size):
            logits = self.model(self.train[0][rows])
            loss = F.cross_entropy(logits.flatten(0, 1), self.train[1][rows].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        logits, direction = self.model(self.validation[0]), self.validation[1]
        loss = F.cross_entropy(logits.flatten(0, 1), direction.flatten()).item()
        return loss, (logits.argmax(2) == direction).float().mean().item()


rng = np.random.default_rng(seed)
trainer = Trainer(GazeTagger(), recordings(480, rng), recordings(120, rng), learning_rate=3e-3)
for epoch in range(10):
    train_loss = trainer.run_epoch(size=24)
    print(f"{epoch} train {train_loss:.3f} val %.3f accuracy %.3f" % trainer.validate())
