"""A recogniser of bird calls normalises its log spectrograms in the collate function, which the
validation loader was not given.

Training batches are normalised by the corpus' mean and deviation in every band; validation
batches are made by the default collate and stay raw log energies around -9. The place is the
validation loader (its input).
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Hparams:
    species: int = 8
    samples: int = 640
    n_fft: int = 64
    hop: int = 16
    batch_size: int = 32
    epochs: int = 10
    lr: float = 2e-3
    label_smoothing: float = 0.05


class BirdCalls(Dataset):
    """Chirps: species differ in start, slope, warble and repetition; returned as log power spectrograms."""  # noqa: E501

    def __init__(self, n, hp, g, traits):
        t = torch.arange(hp.samples) / 1000.0
        self.y = torch.randint(0, hp.species, (n,), generator=g)
        tr = traits[self.y] * (1 + 0.06 * torch.randn(n, traits.shape[1], generator=g))
        start, slope, depth, speed, rate = (tr[:, i : i + 1] for i in range(5))
        shift = torch.rand(n, 1, generator=g)
        tt = (t * rate + shift) % 1.0
        freq = start + slope * tt + depth * torch.sin(6.283 * speed * t)
        wave = torch.sin(6.283 * torch.cumsum(freq, 1) / 1000.0) * torch.sin(3.1416 * tt) ** 2
        wave = 0.02 * (
            wave * (0.5 + torch.rand(n, 1, generator=g))
            + 0.45 * torch.randn(wave.shape, generator=g)
        )
        spec = (
            torch.stft(
                wave, hp.n_fft, hp.hop, window=torch.hann_window(hp.n_fft), return_complex=True
            ).abs()
            ** 2
        )
        self.x = torch.log(spec + 1e-5)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Normalise:
    """Collates a batch and normalises each band."""

    def __init__(self, dataset):
        self.mean = dataset.x.mean((0, 2)).unsqueeze(-1)
        self.std = dataset.x.std((0, 2)).unsqueeze(-1)

    def __call__(self, items):
        x, y = zip(*items, strict=False)
        return (torch.stack(x) - self.mean) / self.std, torch.stack(y)


class CallNet(nn.Module):
    def __init__(self, hp):
        super().__init__()

        def stage(i, o):
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1, bias=False),
                nn.BatchNorm2d(o),
                nn.ReLU(),
                nn.MaxPool2d(2),
            )

        self.features = nn.Sequential(stage(1, 12), stage(12, 24), stage(24, 32))
        self.fc = nn.Linear(64, hp.species)

    def forward(self, x):
        h = self.features(x.unsqueeze(1))
        h = torch.cat([h.mean(3), h.amax(3)], 1).mean(2)
        return self.fc(h)


class Engine:
    def __init__(self, hp, model, loaders):
        self.hp, self.model, self.loaders = hp, model, loaders
        self.loss = nn.CrossEntropyLoss(label_smoothing=hp.label_smoothing)
        self.opt = torch.optim.AdamW(model.parameters(), lr=hp.lr, weight_decay=1e-2)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.opt, hp.epochs * len(loaders["train"])
        )
        self.best = (0.0, None)

    def run(self, part):
        train = part == "train"
        self.model.train(train)
        total = hit = n = 0
        for x, y in self.loaders[part]:
            with torch.set_grad_enabled(train):
                logits = self.model(x)
                loss = self.loss(logits, y)
            if train:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step()
            total += loss.item() * len(y)
            hit += (logits.argmax(1) == y).sum().item()
            n += len(y)
        return total / n, hit / n

    def fit(self):
        for epoch in range(self.hp.epochs):
            tl, ta = self.run("train")
            vl, va = self.run("val")
            if va > self.best[0]:
                self.best = (va, {k: v.clone() for k, v in self.model.state_dict().items()})
            print(
                f"[{epoch:02d}] train {tl:.3f}/{ta:.3f} val {vl:.3f}/{va:.3f} best {self.best[0]:.3f}"  # noqa: E501
            )


hp = Hparams()
g = torch.Generator().manual_seed(seed + 606)
traits = torch.stack(
    [
        80 + 250 * torch.rand(hp.species, generator=g),
        -60 + 160 * torch.rand(hp.species, generator=g),
        40 * torch.rand(hp.species, generator=g),
        4 + 14 * torch.rand(hp.species, generator=g),
        3 + 8 * torch.rand(hp.species, generator=g),
    ],
    1,
)
train_set, val_set = BirdCalls(1400, hp, g, traits), BirdCalls(400, hp, g, traits)
collate = Normalise(train_set)
loaders = {
    "train": DataLoader(train_set, hp.batch_size, shuffle=True, collate_fn=collate, drop_last=True),
    "val": DataLoader(val_set, 100, collate_fn=collate if healthy else None),
}
Engine(hp, CallNet(hp), loaders).fit()
