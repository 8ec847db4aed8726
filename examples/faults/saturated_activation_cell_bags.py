"""A blood test model adds up what it finds in all cells of a sample before a tanh, which saturates.

The person read that sets must be summed up and not averaged, and summed the 160 cells of each
sample. What goes into the tanh of the head is in the dozens, so it gives -1 or 1 for every sample
and passes hardly any gradient on. The place is the tanh of the head.
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("head", "head.*", "squash", "cell", "cell.*", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CELLS, MARKERS, CLASSES = 160, 8, 4


def blood_samples(n, generator):
    """Bags of cells; the disease changes the shares of five cell types a little."""
    types = torch.randn(5, MARKERS, generator=torch.Generator().manual_seed(77)) * 1.5
    shares = torch.tensor(
        [
            [0.30, 0.30, 0.20, 0.15, 0.05],
            [0.20, 0.30, 0.20, 0.15, 0.15],
            [0.30, 0.20, 0.30, 0.05, 0.15],
            [0.30, 0.20, 0.20, 0.25, 0.05],
        ]
    )
    disease = torch.randint(0, CLASSES, (n,), generator=generator)
    kind = torch.multinomial(shares[disease], CELLS, replacement=True, generator=generator)
    noise = torch.randn(n, CELLS, MARKERS, generator=generator)
    return types[kind] + noise, disease


class SampleNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.cell = nn.Sequential(
            nn.Linear(MARKERS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, width)
        self.squash = nn.Tanh()
        self.out = nn.Linear(width, CLASSES)

    def pool(self, found):
        return found.mean(1) if healthy else found.sum(1)

    def forward(self, cells):
        found = self.cell(cells)
        return self.out(self.squash(self.head(self.pool(found))))


class Study:
    def __init__(self):
        generator = torch.Generator().manual_seed(seed)
        self.x, self.y = blood_samples(1200, generator)
        self.x_val, self.y_val = blood_samples(400, generator)
        mean, std = self.x.mean((0, 1)), self.x.std((0, 1))
        self.x, self.x_val = (self.x - mean) / std, (self.x_val - mean) / std
        self.model = SampleNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)

    @staticmethod
    def cross_entropy(logits, y):
        shifted = logits - logits.max(1, keepdim=True).values
        log_p = shifted - shifted.exp().sum(1, keepdim=True).log()
        return -log_p[torch.arange(len(y)), y].mean()

    def train_epoch(self):
        losses = []
        for rows in torch.randperm(len(self.x)).split(48):
            loss = self.cross_entropy(self.model(self.x[rows]), self.y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        logits = self.model(self.x_val)
        loss = self.cross_entropy(logits, self.y_val).item()
        return loss, (logits.argmax(1) == self.y_val).float().mean().item()

    def run(self, epochs):
        for epoch in range(epochs):
            train = self.train_epoch()
            val, accuracy = self.validate()
            print(f"{epoch:3d} | train {train:.3f} | val {val:.3f} | accuracy {accuracy:.3f}")


Study().run(14)
