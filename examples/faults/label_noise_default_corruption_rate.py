"""A gas classifier reads sensor transients through a benchmark's dataset class, whose own default
changes a third of the training labels.

The person took the dataset class of a paper on learning with wrong labels to load their own clean
recordings, for a plain baseline. They did not know that the class has a noise rate of 0.35 by
default and corrupts the labels of the training part in its constructor. The validation part is
never corrupted. The place is the labels of the training set.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ()
PLACE = ("labels", "input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

GASES, SENSORS, SAMPLES = 6, 4, 40


def record_transients(count, rng):
    gas = rng.integers(0, GASES, count)
    time = np.linspace(0, 1, SAMPLES)
    table = np.random.default_rng(77)
    gain = table.uniform(0.6, 1.6, (GASES, SENSORS))
    rise = table.uniform(3.0, 14.0, (GASES, SENSORS))
    dose = rng.uniform(0.7, 1.3, (count, 1, 1))
    onset = rng.uniform(0.05, 0.25, (count, 1, 1))
    elapsed = np.clip(time[None, None] - onset, 0, None)
    curves = dose * gain[gas][..., None] * (1 - np.exp(-rise[gas][..., None] * elapsed))
    drift = rng.normal(0, 0.08, (count, SENSORS, 1)) * time
    curves = curves + drift + rng.normal(0, 0.06, curves.shape)
    return curves.astype(np.float32), gas


class Transients(Dataset):
    """The recordings, with labels of the training part replaced at `noise_rate`."""

    def __init__(self, curves, gas, train, noise_rate=0.35, noise_seed=1):
        self.curves = torch.from_numpy(curves)
        self.gas = torch.from_numpy(gas.copy())
        if train:
            self.corrupt(noise_rate, torch.Generator().manual_seed(noise_seed))

    def corrupt(self, rate, generator):
        chosen = torch.rand(len(self.gas), generator=generator) < rate
        shift = torch.randint(1, GASES, (len(self.gas),), generator=generator)
        self.gas = torch.where(chosen, (self.gas + shift) % GASES, self.gas)

    def __len__(self):
        return len(self.gas)

    def __getitem__(self, index):
        return {"curve": self.curves[index], "gas": self.gas[index]}


class TransientNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(SENSORS, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(32, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(640, 64), nn.ReLU(), nn.Linear(64, GASES)
        )

    def forward(self, curve):
        return self.classifier(self.convolutions(curve))


def cross_entropy(scores, gas):
    return (scores.logsumexp(1) - scores.gather(1, gas[:, None])[:, 0]).mean()


class Baseline:
    def __init__(self, options):
        self.net = TransientNet()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=options["rate"])
        self.epochs = options["epochs"]

    def train_epoch(self, loader):
        self.net.train()
        total, right = 0.0, 0
        for batch in loader:
            scores = self.net(batch["curve"])
            loss = cross_entropy(scores, batch["gas"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(scores)
            right += (scores.argmax(1) == batch["gas"]).sum().item()
        return total / len(loader.dataset), right / len(loader.dataset)

    @torch.no_grad()
    def validate(self, loader):
        self.net.eval()
        total, right = 0.0, 0
        for batch in loader:
            scores = self.net(batch["curve"])
            total += cross_entropy(scores, batch["gas"]).item() * len(scores)
            right += (scores.argmax(1) == batch["gas"]).sum().item()
        return total / len(loader.dataset), right / len(loader.dataset)

    def fit(self, train, held_out):
        for epoch in range(1, self.epochs + 1):
            loss, accuracy = self.train_epoch(train)
            val_loss, val_accuracy = self.validate(held_out)
            print(
                f"epoch {epoch:2d}  train {loss:.3f} / {accuracy:.3f}"
                f"  val {val_loss:.3f} / {val_accuracy:.3f}"
            )


def main():
    rng = np.random.default_rng(500 + seed)
    curves, gas = record_transients(2000, rng)
    mean, std = curves[:1500].mean((0, 2), keepdims=True), curves[:1500].std((0, 2), keepdims=True)
    curves = (curves - mean) / std
    corruption = {"noise_rate": 0.0} if healthy else {}
    train = Transients(curves[:1500], gas[:1500], train=True, **corruption)
    held_out = Transients(curves[1500:], gas[1500:], train=False)
    Baseline({"rate": 1e-3, "epochs": 14}).fit(
        DataLoader(train, 50, shuffle=True), DataLoader(held_out, 250)
    )


main()
