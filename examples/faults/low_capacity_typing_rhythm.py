"""Who is typing? Ten people by the rhythm of their keystrokes, through a layer of one unit.

The `bottleneck` of the configuration was set to 1 to see whether the script runs on the small
board, and stayed. All that the network knows of a person passes through one number.
The place is the bottleneck. The twin has 32 units there.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("bottleneck", "bottleneck*", "out", "encoder*")
SILENT = True
EXACT = False
EARLY = True


class Rhythm(nn.Module):
    def __init__(self, keys, people, bottleneck):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(keys, 64), nn.ReLU(), nn.Dropout(0.1))
        self.bottleneck = nn.Linear(64, bottleneck)
        self.out = nn.Linear(bottleneck, people)

    def forward(self, x):
        return self.out(self.bottleneck(self.encoder(x)).tanh())


class Trainer:
    def __init__(self, model, lr, epochs, batch):
        self.model, self.epochs, self.batch = model, epochs, batch
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, x, y, x_val, y_val):
        for epoch in range(1, self.epochs + 1):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(self.batch):
                loss = self.criterion(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows)
            if epoch % 5 == 0:
                print(
                    f"{epoch:3d} loss {total / len(x):.3f} accuracy {self.test(x_val, y_val):.3f}"
                )

    @torch.no_grad()
    def test(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


def keystrokes(n, people, keys, g):
    habits = 0.8 * torch.randn(people, keys, generator=g)
    y = torch.randint(0, people, (n,), generator=g)
    tempo = 0.3 * torch.randn(n, 1, generator=g)
    x = habits[y] + tempo + torch.randn(n, keys, generator=g)
    return (x - x.mean(0)) / x.std(0), y


def main():
    healthy, seed = arguments(__doc__)
    people, keys = 10, 20
    x, y = keystrokes(2500, people, keys, torch.Generator().manual_seed(seed))
    model = Rhythm(keys, people, bottleneck=32 if healthy else 1)
    Trainer(model, lr=2e-3, epochs=20, batch=64).fit(x[:2000], y[:2000], x[2000:], y[2000:])


if __name__ == "__main__":
    main()
