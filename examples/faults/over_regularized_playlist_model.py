"""A GRU language model of playlists (which track comes next); Adam has weight decay 0.1, which
pulls all weights to zero.

A value meant for AdamW (or found in the paper of a huge model) was given to Adam, where it is
added to the gradient and outweighs it. The place is the optimizer (weight_decay).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer", "tracks*", "gru*", "output*")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

TRACKS, MOODS, LENGTH = 120, 6, 14


def make_playlists(rng, n):
    """Each list has a mood which seldom changes; tracks of a mood follow each other by their tempo."""  # noqa: E501
    mood = rng.integers(0, MOODS, n)
    tempo = rng.integers(0, 20, n)
    lists = np.zeros((n, LENGTH), dtype=np.int64)
    for t in range(LENGTH):
        lists[:, t] = mood * 20 + tempo
        tempo = (tempo + rng.choice([1, 2, 3, 7], n, p=[0.55, 0.25, 0.1, 0.1])) % 20
        mood = np.where(rng.random(n) < 0.05, rng.integers(0, MOODS, n), mood)
    return torch.from_numpy(lists)


class PlaylistModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.tracks = nn.Embedding(TRACKS, 32)
        self.gru = nn.GRU(32, width, batch_first=True)
        self.output = nn.Linear(width, TRACKS)

    def forward(self, lists):
        return self.output(self.gru(self.tracks(lists))[0])


def lm_loss(model, lists):
    logits = model(lists[:, :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, TRACKS), lists[:, 1:].reshape(-1))


def train(model, lists, val_lists, epochs=8):
    weight_decay = 1e-5 if healthy else 0.1
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=weight_decay)
    for epoch in range(epochs):
        model.train()
        losses = []
        for rows in torch.randperm(len(lists)).split(50):
            loss = lm_loss(model, lists[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val_loss = lm_loss(model, val_lists).item()
            hits = (model(val_lists[:, :-1]).argmax(-1) == val_lists[:, 1:]).float().mean().item()
        print(f"epoch {epoch} loss {np.mean(losses):.3f} val loss {val_loss:.3f} hit@1 {hits:.3f}")


rng = np.random.default_rng(seed)
playlists = make_playlists(rng, 2400)
train(PlaylistModel(), playlists[:2000], playlists[2000:])
