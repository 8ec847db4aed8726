"""A wave regressor splits its data anew in each of the two functions that make the loaders.

train_loader() and val_loader() both call random_split without a generator of their own, so the two
halves come from different splits and four in five validation rows are trained on, too. The
validation is too good. The twin gives both calls a generator with the same seed. The place is the
input or the loader.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def dataset():
    """Damped oscillations, and their damping (standardised)."""
    n = 1500
    damping = torch.rand(n, 1)
    t = torch.linspace(0, 6, 32)
    x = torch.exp(-damping * t) * torch.cos(t * (2 + torch.rand(n, 1)) + 6.28 * torch.rand(n, 1))
    x = x + 0.1 * torch.randn(n, 32)
    return TensorDataset(x / 0.48, (damping - 0.5) / 0.289)


def generator():
    return torch.Generator().manual_seed(seed) if healthy else None


def train_loader(data):
    train, _ = random_split(data, [1200, 300], generator=generator())
    return DataLoader(train, batch_size=32, shuffle=True)


def val_loader(data):
    _, val = random_split(data, [1200, 300], generator=generator())
    return DataLoader(val, batch_size=300)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
        self.criterion = nn.MSELoss()

    def train(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        return sum(self.criterion(self.model(x), y).item() for x, y in loader) / len(loader)


data = dataset()
fresh = DataLoader(dataset(), batch_size=1500)
training, validation = train_loader(data), val_loader(data)
trainer = Trainer(
    nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh(), nn.Linear(24, 1))
)
for epoch in range(1, 21):
    train_loss = trainer.train(training)
    if epoch % 4 == 0:
        print(f"epoch {epoch}: train {train_loss:.4f} val {trainer.evaluate(validation):.4f}")
shared = set(training.dataset.indices) & set(validation.dataset.indices)
print(
    f"{len(shared)} of 300 validation rows are trained on; fresh data {trainer.evaluate(fresh):.4f}"
)
