"""Capacity of battery cells from charge curves: the encoder is thawed by a flag on the module.

For two epochs the new head settles on a frozen encoder, drawn at random. Then comes
`encoder.requires_grad = True`, which only sets an attribute of the module; the parameters want
`requires_grad_(True)`. The encoder never learns anything. The place is the module "encoder". The
twin calls the method.
"""

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder", "encoder.0.weight", "encoder.2.weight", "encoder.5.weight", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def charge_curves(n: int, points: int = 64):
    """Voltage over the charge; ageing moves two plateaus and raises the resistance."""
    g = torch.Generator().manual_seed(210 + seed)
    lithium, active, ohm = (torch.rand(n, 1, generator=g) for _ in range(3))
    q = torch.linspace(0, 1, points)
    first = torch.sigmoid((q - 0.25 + 0.12 * lithium) * 22)
    second = torch.sigmoid((q - 0.7 + 0.15 * active) * 18)
    offset = 0.05 * torch.randn(n, 1, generator=g)
    curve = 3.3 + 0.25 * first + 0.35 * second + 0.25 * ohm * (1 + q) + offset
    curve = curve + 0.02 * torch.randn(n, points, generator=g)
    capacity = 5 - 0.8 * torch.maximum(lithium, active) - 0.4 * lithium * active - 0.1 * ohm
    capacity = capacity + 0.03 * torch.randn(n, 1, generator=g)
    return curve.unsqueeze(1), capacity


class CapacityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(16, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 32, 8),
            nn.Tanh(),
        )
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.encoder(x))


class Trainer:
    def __init__(self, model, thaw_after: int = 2, epochs: int = 16):
        self.model, self.thaw_after, self.epochs = model, thaw_after, epochs
        self.model.encoder.requires_grad_(False)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def on_epoch_start(self, epoch: int):
        if epoch == self.thaw_after:
            if healthy:
                self.model.encoder.requires_grad_(True)
            else:
                self.model.encoder.requires_grad = True

    def fit(self, x, y, x_val, y_val, batch: int = 50):
        for epoch in range(self.epochs):
            self.on_epoch_start(epoch)
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(batch):
                loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows) / len(x)
            val = self.evaluate(x_val, y_val)
            if epoch % 3 == 0:
                print(f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}")
        return val

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return nn.functional.mse_loss(self.model(x), y).item()


x, y = charge_curves(2000)
x = (x - x[:1500].mean(0)) / x[:1500].std()
y = (y - y[:1500].mean()) / y[:1500].std()
val = Trainer(CapacityNet()).fit(x[:1500], y[:1500], x[1500:], y[1500:])
print(f"validation R2 {1 - val / y[1500:].var().item():.4f}")
