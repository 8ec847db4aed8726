"""Writes on melodies note by note with a plain recurrent network; its gradients grow step by step.

To keep the memory alive over long tunes the author drew the recurrent weights from a wider normal
distribution than usual. The matrix now stretches what it is given: over forty-eight notes the
gradient is multiplied by it again and again, and nothing clips it.
The place is the recurrent layer. The twin starts from an orthogonal matrix of gain 1.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("rnn", "rnn.weight_hh_l0", "loop")
SILENT = False
EXACT = False
EARLY = True

CONFIG = {
    "notes": 15,
    "length": 48,
    "hidden": 48,
    "batch": 32,
    "steps": 240,
    "lr": 0.003,
}


def melodies(n, length, notes, g):
    """Scales that go up or down by one, two or three steps; the stride seldom changes."""
    tunes = torch.zeros(n, length, dtype=torch.long)
    at = torch.randint(0, notes, (n,), generator=g)
    stride = torch.randint(1, 4, (n,), generator=g)
    for t in range(length):
        tunes[:, t] = at
        change = torch.rand(n, generator=g) < 0.05
        stride = torch.where(change, torch.randint(1, 4, (n,), generator=g), stride)
        at = (at + stride) % notes
    return tunes


class MelodyModel(nn.Module):
    def __init__(self, notes, hidden, wide):
        super().__init__()
        self.embed = nn.Embedding(notes, 24)
        self.rnn = nn.RNN(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, notes)
        if wide:
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.6)
        else:
            nn.init.orthogonal_(self.rnn.weight_hh_l0)

    def forward(self, tunes):
        states, _ = self.rnn(self.embed(tunes))
        return self.head(states)


def next_note_loss(model, tunes):
    logits = model(tunes[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tunes[:, 1:].flatten())


def main():
    healthy, seed = arguments(__doc__)
    c = CONFIG
    g = torch.Generator().manual_seed(seed)
    train = melodies(1000, c["length"], c["notes"], g)
    val = melodies(100, c["length"], c["notes"], g)
    model = MelodyModel(c["notes"], c["hidden"], wide=not healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=c["lr"])
    for step in range(1, c["steps"] + 1):
        rows = torch.randint(0, len(train), (c["batch"],), generator=g)
        loss = next_note_loss(model, train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0 or step == 1:
            with torch.no_grad():
                val_loss = next_note_loss(model, val).item()
            print(f"step {step:3d} loss {loss.item():.4g} val {val_loss:.4g}")


main()
