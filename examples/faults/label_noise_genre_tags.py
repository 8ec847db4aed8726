"""A GRU tells the genre of a song from its chords; four in ten training songs carry a wrong genre.

The training tags were scraped from a site where anyone can tag, so many songs have the tag of
some other genre; the validation songs were tagged by an editor. The network learns the rule first
and then learns the wrong tags by heart. The place is the labels that the training loader gives.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CHORDS, GENRES, LENGTH, EPOCHS = 24, 5, 16, 16


def compose(rng, n, habits):
    """Songs as Markov chains over chords; each genre has habits of its own."""
    genres = rng.integers(0, GENRES, n)
    songs = np.zeros((n, LENGTH), dtype=np.int64)
    songs[:, 0] = rng.integers(0, CHORDS, n)
    for t in range(1, LENGTH):
        cumulative = habits[genres, songs[:, t - 1]].cumsum(-1)
        songs[:, t] = (rng.random((n, 1)) > cumulative).sum(-1).clip(0, CHORDS - 1)
    return songs, genres


class GenreNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.chords = nn.Embedding(CHORDS, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.head = nn.Sequential(
            nn.Linear(width, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, GENRES)
        )

    def forward(self, songs):
        states, _ = self.gru(self.chords(songs))
        return self.head(states.mean(1))


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=5e-3):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, EPOCHS)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        losses, right = [], 0
        for songs, genres in self.train_loader:
            self.optimizer.zero_grad()
            logits = self.model(songs)
            loss = self.criterion(logits, genres)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            right += (logits.argmax(1) == genres).sum().item()
        self.scheduler.step()
        return sum(losses) / len(losses), right / len(self.train_loader.dataset)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total, right, n = 0.0, 0, 0
        for songs, genres in self.val_loader:
            logits = self.model(songs)
            total += self.criterion(logits, genres).item() * len(genres)
            right += (logits.argmax(1) == genres).sum().item()
            n += len(genres)
        return total / n, right / n


rng = np.random.default_rng(seed)
habits = rng.dirichlet(np.full(CHORDS, 0.25), size=(GENRES, CHORDS))
songs, genres = compose(rng, 1600, habits)
val_songs, val_genres = compose(rng, 600, habits)

wrong_share = 0.0 if healthy else 0.4
wrong = rng.random(len(genres)) < wrong_share
genres = np.where(wrong, (genres + rng.integers(1, GENRES, len(genres))) % GENRES, genres)

train_set = TensorDataset(torch.from_numpy(songs), torch.from_numpy(genres))
val_set = TensorDataset(torch.from_numpy(val_songs), torch.from_numpy(val_genres))
trainer = Trainer(GenreNet(), DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 200))
for epoch in range(EPOCHS):
    loss, accuracy = trainer.train_epoch()
    val_loss, val_accuracy = trainer.evaluate()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch} loss {loss:.3f} acc {accuracy:.3f} val loss {val_loss:.3f} acc {val_accuracy:.3f}"  # noqa: E501
        )
