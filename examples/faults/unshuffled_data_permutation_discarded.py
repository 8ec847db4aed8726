"""A radar classifier of movements shuffles with `permutation`, which returns a new order and
leaves the old one, sorted by movement.

The person wrote an iterator of their own over a table that is sorted by class and meant to
shuffle its rows at the start of each epoch. They call numpy's `permutation` where `shuffle` works
in place; the answer is thrown away. Each batch has one movement, in the same order each epoch,
and the net answers with the last ones. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

MOVEMENTS = ("walking", "limping", "falling", "sitting down", "crawling")
FRAMES, BINS = 20, 12


def radar_echoes(per_class, rng):
    """A Doppler picture and the distance track of each recording, sorted by movement."""
    frame, velocity = np.arange(FRAMES)[:, None], np.linspace(-1, 1, BINS)
    swing = (0.5, 0.5, 0.15, 0.15, 0.3)
    pace = (0.9, 0.9, 0.3, 0.3, 0.5)
    drop = (0.0, 0.0, 0.8, 0.5, 0.0)
    pictures, tracks, labels = [], [], []
    for label in range(len(MOVEMENTS)):
        for _ in range(per_class):
            phase = rng.uniform(0, 2 * np.pi)
            limp = 0.5 * np.cos(pace[label] * frame / 2 + phase) if label == 1 else 0
            centre = swing[label] * (1 + limp) * np.sin(pace[label] * frame + phase)
            start = rng.integers(5, 13)
            centre = centre - drop[label] * np.exp(-(((frame - start) / 3.0) ** 2))
            picture = np.exp(-(((velocity - centre) / 0.2) ** 2))
            pictures.append(picture + rng.normal(0, 0.25, picture.shape))
            speed = (0.3, 0.2, 0.05, 0.02, 0.12)[label] * rng.uniform(0.7, 1.3)
            tracks.append(rng.uniform(-1, 1) + speed * frame[:, 0] / 5 + rng.normal(0, 0.1, FRAMES))
            labels.append(label)
    return {
        "picture": np.array(pictures, np.float32),
        "track": np.array(tracks, np.float32),
        "movement": np.array(labels),
    }


class Batches:
    def __init__(self, table, rows, size, rng):
        self.table, self.rows, self.size, self.rng = table, np.sort(rows), size, rng

    def __iter__(self):
        if healthy:
            self.rng.shuffle(self.rows)
        else:
            self.rng.permutation(self.rows)
        for start in range(0, len(self.rows), self.size):
            rows = self.rows[start : start + self.size]
            yield {name: torch.from_numpy(column[rows]) for name, column in self.table.items()}


class TwoStreamNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((5, 3)),
            nn.Flatten(),
        )
        self.track = nn.Sequential(nn.Linear(FRAMES, 24), nn.ReLU())
        self.classes = nn.Linear(360 + 24, len(MOVEMENTS))

    def forward(self, batch):
        picture = self.picture(batch["picture"][:, None])
        return self.classes(torch.cat([picture, self.track(batch["track"])], 1))


def log_loss(scores, movement):
    return (scores.logsumexp(1) - scores.gather(1, movement[:, None])[:, 0]).mean()


class Study:
    def __init__(self):
        self.net = TwoStreamNet()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.03, momentum=0.9)

    def epoch(self, batches):
        self.net.train()
        losses = []
        for batch in batches:
            loss = log_loss(self.net(batch), batch["movement"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    @torch.no_grad()
    def validate(self, batch):
        self.net.eval()
        scores = self.net(batch)
        right = (scores.argmax(1) == batch["movement"]).float().mean().item()
        return log_loss(scores, batch["movement"]).item(), right


def main():
    rng = np.random.default_rng(700 + seed)
    table = radar_echoes(300, rng)
    order = rng.permutation(len(table["movement"]))
    batches = Batches(table, order[:1200], 40, rng)
    held_out = {name: torch.from_numpy(column[order[1200:]]) for name, column in table.items()}
    study = Study()
    for epoch in range(1, 11):
        loss = study.epoch(batches)
        val, right = study.validate(held_out)
        print(f"epoch {epoch:2d}  loss {loss:.4f}  val {val:.4f}  accuracy {right:.3f}")


main()
