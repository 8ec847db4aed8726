"""Hears by a note's envelope how it was played; the GRU takes the batch for the time.

The clips come as (batch, time, features) and `batch_first` was forgotten. The recurrent layer goes
from clip to clip and never along a clip: what it says about one clip depends on those that stand
before it in the batch, and of the clip itself it sees the last frame.
The place is the recurrent layer. The twin has `batch_first=True`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("gru", "listen", "model.gru")
SILENT = True
EXACT = False
EARLY = True

HOW = ("plucked", "bowed", "struck", "swelling")


def make_notes(n, frames=24):
    """Loudness and brightness over 24 frames for four ways to play."""
    kind = torch.randint(0, len(HOW), (n,))
    t = torch.linspace(0, 1, frames)
    attack = torch.tensor([0.02, 0.25, 0.02, 0.6])[kind].unsqueeze(1)
    attack = attack * (0.7 + 0.6 * torch.rand(n, 1))
    decay = torch.tensor([2.5, 0.8, 5.0, 0.8])[kind].unsqueeze(1) * (0.8 + 0.4 * torch.rand(n, 1))
    rise = (t / attack).clamp(max=1)
    loud = rise * torch.exp(-decay * (t - attack).clamp(min=0))
    bright = loud * torch.exp(-1.5 * t) + 0.1 * torch.rand(n, 1)
    gain = 0.5 + torch.rand(n, 1)
    notes = torch.stack([gain * loud, bright], 2)
    notes = notes + 0.08 * torch.randn(n, frames, 2)
    return (notes - notes.mean((0, 1))) / notes.std((0, 1)), kind


class Listener(nn.Module):
    def __init__(self, along_time):
        super().__init__()
        self.gru = nn.GRU(2, 48, batch_first=along_time)
        self.head = nn.Linear(48, len(HOW))

    def forward(self, notes):
        states, _ = self.gru(notes)
        return self.head(states[:, -1])


def main():
    healthy, _seed = arguments(__doc__)
    notes = TensorDataset(*make_notes(1200))
    train_set, val_set = random_split(notes, [900, 300])
    train = DataLoader(train_set, batch_size=30, shuffle=True)
    val = DataLoader(val_set, batch_size=30)
    model = Listener(along_time=healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        train_loss = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train)
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val)
        print(f"epoch {epoch} loss {train_loss:.3f} validation accuracy {hits / 300:.3f}")


main()
