"""How far a thrown ball flies, by blocks of a linear layer and batch norm, without an activation.

The layers were moved into a helper function when the net got deeper, and the activation was left
behind. Five layers then do what one could, and the fit stops at that of a linear regression. The
place is the model (body).
"""

import itertools
import logging

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("model", "body*", "head*")
SILENT = True
EXACT = True
EARLY = True

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("throw")


def throws(n):
    """Speed, angle, height and headwind -> distance, with friction left out."""
    speed = 5 + 20 * torch.rand(n)
    angle = 0.15 + 1.25 * torch.rand(n)
    height = 3 * torch.rand(n)
    wind = 0.8 * torch.randn(n)
    up, along = speed * angle.sin(), speed * angle.cos()
    in_air = (up + (up**2 + 2 * 9.81 * height).sqrt()) / 9.81
    distance = along * in_air - 0.5 * wind * in_air**2
    return torch.stack([speed, angle, height, wind], 1), distance + 0.3 * torch.randn(n)


def block(n_in, n_out, activation):
    layers = [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out)]
    if activation is not None:
        layers.append(activation())
    return nn.Sequential(*layers)


class ThrowNet(nn.Module):
    def __init__(self, n_in, width=48, depth=4, activation=None):
        super().__init__()
        sizes = [n_in] + [width] * depth
        self.body = nn.Sequential(*(block(a, b, activation) for a, b in itertools.pairwise(sizes)))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x)).flatten()


class Trainer:
    def __init__(self, model, lr, batch_size):
        self.model, self.batch_size = model, batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def fit(self, x, y, x_val, y_val, epochs):
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(self.batch_size):
                loss = self.loss_fn(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows)
            schedule.step()
            if (epoch + 1) % 3 == 0:
                log.info(
                    "epoch %d: train mse %.4f, val mse %.4f",
                    epoch + 1,
                    total / len(x),
                    self.validate(x_val, y_val),
                )

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        return self.loss_fn(self.model(x), y).item()


def main():
    healthy, _ = arguments(__doc__)
    x, y = throws(2500)
    x, x_val, y, y_val = x[:2000], x[2000:], y[:2000], y[2000:]
    mean, std = x.mean(0), x.std(0)
    y_mean, y_std = y.mean(), y.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    y, y_val = (y - y_mean) / y_std, (y_val - y_mean) / y_std

    model = ThrowNet(4, activation=nn.SiLU if healthy else None)
    trainer = Trainer(model, lr=3e-3, batch_size=64)
    trainer.fit(x, y, x_val, y_val, epochs=21)
    mse = trainer.validate(x_val, y_val)
    log.info("R2 %.3f, typical error %.2f m", 1 - mse, mse**0.5 * y_std)


if __name__ == "__main__":
    main()
