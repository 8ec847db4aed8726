"""Eight species of birds from features of their calls, learnt as if the species' number were a
size.

The trainer came from a project on regression: one output, `MSELoss`, and targets turned into
floats so that the error message goes away. Species 3 is then between species 2 and 4, and a call
that could be 1 or 7 is called 4. The loss falls nicely. The place is the loss (and the labels).
The twin has eight outputs and cross entropy.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "label*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SPECIES = 8


def calls(n, centres):
    """Twenty features of a call (pitch, sweep, length, ...), a cloud for each of two call types."""
    y = torch.randint(0, SPECIES, (n,))
    kind = torch.randint(0, 2, (n,))
    return centres[y, kind] + torch.randn(n, 20), y


class Trainer:
    """Fits a model; `predict` says how its outputs become an answer."""

    def __init__(self, model, criterion=None, predict=None, lr=2e-3):
        self.model = model
        self.criterion = criterion or nn.MSELoss()
        self.predict = predict or (lambda out: out.round())
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=1e-4)

    def loss(self, x, y):
        out = self.model(x)
        if isinstance(self.criterion, nn.MSELoss):
            out, y = out.squeeze(1), y.float()
        return self.criterion(out, y)

    def fit(self, loader, x_val, y_val, epochs):
        for epoch in range(1, epochs + 1):
            self.model.train()
            total = 0.0
            for x, y in loader:
                loss = self.loss(x, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.evaluate(epoch, total / len(loader), x_val, y_val)

    @torch.no_grad()
    def evaluate(self, epoch, train_loss, x_val, y_val):
        self.model.eval()
        out = self.model(x_val)
        answer = self.predict(out).view(-1)
        right = (answer == y_val).float().mean().item()
        print(
            f"epoch {epoch:2d} train {train_loss:.3f} val {self.loss(x_val, y_val):.3f} "
            f"right {right:.3f}"
        )


centres = 0.8 * torch.randn(SPECIES, 2, 20)
x, y = calls(3000, centres)
x_val, y_val = calls(750, centres)
x, x_val = standardise(x, x_val)
outputs = SPECIES if healthy else 1
model = nn.Sequential(
    nn.Linear(20, 64),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, outputs),
)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
if healthy:
    trainer = Trainer(model, nn.CrossEntropyLoss(), lambda out: out.argmax(1))
else:
    trainer = Trainer(model)
trainer.fit(loader, x_val, y_val, epochs=10)
