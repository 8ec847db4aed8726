"""A convolutional net recognises gestures of a wrist sensor; the rate is the one that SGD had.

The experiment file says `lr: 0.1`. The optimizer's name was changed from sgd to adam on the
command line, the rate was left: a tenth per step for every weight, whatever its gradient. The
filters are thrown about within a few steps and the loss stays about where it started. The place is
the optimizer. The twin runs Adam at 0.002.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

EXPERIMENT = {"model": {"hidden": 32}, "train": {"lr": 0.1, "epochs": 8, "batch": 32}}
OVERRIDES = {"optimizer": "adam", **({"lr": 0.002} if healthy else {})}


def recordings(n, length=40):
    """Three axes of five gestures: shake, circle, push, lift and twist, each with its own tempo."""
    y = torch.randint(0, 5, (n,))
    t = torch.linspace(0, 6.283, length)
    tempo = 0.8 + 0.5 * torch.rand(n, 1)
    s, c = (t * tempo).sin(), (t * tempo).cos()
    still = torch.zeros_like(s)
    kinds = torch.stack(
        [
            torch.stack([(4 * t * tempo).sin(), still, still], -1),
            torch.stack([s, c, still], -1),
            torch.stack([(-((t - 3) ** 2)).exp().expand_as(s), still, still], -1),
            torch.stack([still, still, (-((t - 3) ** 2) / 2).exp().expand_as(s)], -1),
            torch.stack([c, still, s], -1),
        ]
    )
    x = kinds[y, torch.arange(n)]
    x = torch.stack(
        [r.roll(int(k), 0) for r, k in zip(x, torch.randint(-6, 7, (n,)), strict=False)]
    )
    return x * (0.7 + 0.6 * torch.rand(n, 1, 1)) + 0.8 * torch.randn(n, length, 3), y


class GestureNet(nn.Module):
    def __init__(self, hidden, classes=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, hidden, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(hidden, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 3, padding=1),
            nn.ReLU(),
        )
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(self.body(x.transpose(1, 2)).mean(2))


class Experiment:
    def __init__(self, config, overrides):
        self.config = {**config["train"], **overrides}
        full = TensorDataset(*recordings(1600))
        train, val = random_split(full, [1280, 320])
        self.train_loader = DataLoader(train, self.config["batch"], shuffle=True)
        self.val_loader = DataLoader(val, 160)
        self.model = GestureNet(**config["model"])
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        self.optimizer = kinds[self.config["optimizer"]](
            self.model.parameters(), lr=self.config["lr"]
        )
        self.criterion = nn.CrossEntropyLoss()

    def run(self):
        for epoch in range(self.config["epochs"]):
            self.model.train()
            for x, y in self.train_loader:
                loss = self.criterion(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(
                f"epoch {epoch}: train loss {loss.item():.3f}, val accuracy {self.accuracy():.3f}"
            )

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        right = [(self.model(x).argmax(1) == y).float().mean() for x, y in self.val_loader]
        return float(torch.stack(right).mean())


Experiment(EXPERIMENT, OVERRIDES).run()
