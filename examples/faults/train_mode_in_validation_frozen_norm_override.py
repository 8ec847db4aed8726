"""Genre from audio features; the module's own `train()` forgets the mode that it is given.

To keep the statistics of the input norm fixed after the warm-up, `train` was overridden. The
override calls `super().train()` without its argument, and `eval()` is nothing but `train(False)`:
the net never leaves the training mode, and the validation is done with dropout and with batch
statistics. Model selection goes by those numbers. The place is the loop's evaluation, through
`Genre.train`. The twin hands the mode on.
"""

import torch
from data import arguments
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
GENRES, FEATURES = 6, 30


class Genre(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.scale = nn.BatchNorm1d(FEATURES, affine=False)
        self.body = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.5),
        )
        self.head = nn.Linear(width, GENRES)
        self.warm = True

    def train(self, mode=True):
        if healthy:
            super().train(mode)
        else:
            super().train()
        if not self.warm:
            self.scale.eval()  # its statistics are final
        return self

    def forward(self, x):
        return self.head(self.body(self.scale(x)))


def albums(count, centers):
    """Timbre means and deviations of tracks around three styles for each genre, on odd scales."""
    genre, style = torch.randint(0, GENRES, (count,)), torch.randint(0, 3, (count,))
    x = centers[genre, style] + 1.5 * torch.randn(count, FEATURES)
    return x * torch.linspace(0.5, 4, FEATURES) + torch.linspace(-3, 3, FEATURES), genre


class Trainer:
    def __init__(self, model, lr=4e-3, batch=40, epochs=12):
        self.model, self.batch, self.epochs = model, batch, epochs
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, train, val):
        for epoch in range(self.epochs):
            self.model.train()
            for rows in torch.randperm(len(train[0])).split(self.batch):
                loss = self.criterion(self.model(train[0][rows]), train[1][rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.model.warm = False
            self.schedule.step()
            val_loss, accuracy = self.validate(*val)
            print(
                f"epoch {epoch:2d} loss {loss.item():.3f} val loss {val_loss:.3f} "
                f"val accuracy {accuracy:.3f}"
            )
        return accuracy

    def validate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            logits = torch.cat([self.model(part) for part in x.split(20)])
        return self.criterion(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


centers = torch.randn(GENRES, 3, FEATURES)
train, val = albums(1600, centers), albums(500, centers)
accuracy = Trainer(Genre()).fit(train, val)
print(f"validation accuracy {accuracy:.3f}")
