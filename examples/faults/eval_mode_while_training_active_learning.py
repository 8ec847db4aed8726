"""Active learning on sensor windows: the model asks for the labels it is least sure of.

The score of the unlabelled pool needs eval(), and after the first round nobody calls train() again.
From the second round on there is no dropout, and batch normalisation keeps the statistics of the
first forty examples, which come from one machine. The fit gets restless and worse; nobody says why.
The place is the loop. The twin calls train() when a round of fitting begins.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "", "body*", "drop*")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
CLASSES, CHANNELS, LENGTH = 6, 3, 24


def windows(n, g):
    """Movements on eight machines, one after the other; each has its own gain and its own rest."""
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.arange(LENGTH) / LENGTH * 6.28
    speed = 1.0 + 0.7 * y[:, None, None] + 0.1 * torch.randn(n, 1, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, 1, generator=g) + torch.arange(CHANNELS)[None, :, None]
    gain = torch.exp(0.3 * torch.randn(n, CHANNELS, 1, generator=g))
    x = gain * torch.sin(speed * t + phase)
    machine = torch.arange(n) * 8 // n
    rest = torch.tensor([0.0, 1.5, -1.0, 2.5, -2.0, 0.5, 3.0, -3.0])
    x = x * (0.5 + 0.25 * machine)[:, None, None] + rest[machine, None, None]
    return x + 0.5 * torch.randn(n, CHANNELS, LENGTH, generator=g), y


class WindowNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 5, 1, 2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(),
        )  # fmt: skip
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(width * LENGTH // 4, CLASSES)

    def forward(self, x):
        return self.head(self.drop(self.body(x).flatten(1)))


class Learner:
    def __init__(self, pool, labels, first=40):
        self.pool, self.labels = pool, labels
        self.known = torch.zeros(len(pool), dtype=torch.bool)
        self.known[:first] = True  # those of the first machine were labelled long ago
        self.model = WindowNet()
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3
        )

    def fit(self, steps=60, size=32):
        if healthy:
            self.model.train()
        known = self.known.nonzero().squeeze(1)
        for _ in range(steps):
            rows = known[torch.randint(len(known), (size,))]
            loss = F.cross_entropy(self.model(self.pool[rows]), self.labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def ask(self, n=60):
        self.model.eval()
        p = self.model(self.pool).softmax(1)
        unsure = -(p * p.clamp_min(1e-9).log()).sum(1)
        unsure[self.known] = -1
        self.known[unsure.topk(n).indices] = True

    @torch.no_grad()
    def accuracy(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(seed)
pool, labels = windows(1500, g)
x_test, y_test = windows(800, g)
learner = Learner(pool, labels)
for _ in range(8):
    loss = learner.fit()
    accuracy = learner.accuracy(x_test, y_test)
    print(f"{int(learner.known.sum())} labels: loss {loss:.4f}, test accuracy {accuracy:.3f}")
    learner.ask()
