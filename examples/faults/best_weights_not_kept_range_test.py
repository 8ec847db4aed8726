"""A range test looks for the learning rate in a hundred steps of growing rates, and goes back to
the weights that it began with; these are kept by `dict(model.state_dict())`, which copies nothing.

The training begins with the weights that the largest rates have left, and learns all the same
(silent). The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False


class RangeTest:
    """Raises the rate from step to step; `suggestion` is a tenth of where the loss was lowest."""

    def __init__(self, model, optimizer, criterion, lowest=1e-4, highest=3e-1, steps=100):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.rates = torch.logspace(*torch.tensor([lowest, highest]).log10(), steps).tolist()
        self.losses = []

    def run(self, loader):
        batches = iter(loader)
        for rate in self.rates:
            try:
                rows, labels = next(batches)
            except StopIteration:
                batches = iter(loader)
                rows, labels = next(batches)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(rows), labels)
            loss.backward()
            self.optimizer.step()
            self.losses.append(
                0.9 * self.losses[-1] + 0.1 * loss.item() if self.losses else loss.item()
            )

    @property
    def suggestion(self):
        return self.rates[self.losses.index(min(self.losses))] / 10


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = digits(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    if healthy:
        before = {name: value.clone() for name, value in model.state_dict().items()}
    else:
        before = dict(model.state_dict())
    search = RangeTest(model, optimizer, criterion)
    search.run(loader)
    model.load_state_dict(before)

    optimizer = torch.optim.SGD(model.parameters(), lr=search.suggestion, momentum=0.9)
    for epoch in range(6):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(rows), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
