"""Learns the power curve of wind turbines with gathered gradients; the number of batches to gather
is larger than the number of batches in an epoch.

The setting comes from a config for ten times as many turbines. The counter starts anew with each
epoch, and so do the gradients, so the condition for a step is never met.
The place is the loop around the optimizer.
The twin gathers four batches.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {
    "samples": 3000,
    "batch_size": 32,
    "accumulate": 4 if healthy else 128,
    "learning_rate": 8e-3,
    "epochs": 14,
}


def scada(n):
    """Ten minute means: wind speed, direction error, air density, turbulence; output in MW."""
    speed = 2 + 8 * torch.rand(n) + 6 * torch.rand(n)
    yaw = 0.15 * torch.randn(n)
    density = 1.2 + 0.05 * torch.randn(n)
    turbulence = 0.05 + 0.15 * torch.rand(n)
    effective = speed * yaw.cos() ** 2 * (density / 1.2) ** (1 / 3) * (1 + turbulence**2)
    power = 3.3 * torch.sigmoid((effective - 9.5) * 0.85) + 0.06 * torch.randn(n)
    columns = (speed - 9) / 2.9, yaw / 0.15, (density - 1.2) / 0.05, (turbulence - 0.125) / 0.043
    return torch.stack(columns, 1), power.unsqueeze(1)


class PowerCurveTrainer:
    def __init__(self, config):
        self.config = config
        data = TensorDataset(*scada(config["samples"]))
        self.train, self.val = random_split(data, [0.8, 0.2])
        self.model = nn.Sequential(
            nn.Linear(4, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["learning_rate"])
        self.criterion = nn.MSELoss()

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        loader = DataLoader(self.train, self.config["batch_size"], shuffle=True, drop_last=True)
        mean = 0.0
        for i, (x, y) in enumerate(loader):
            loss = self.criterion(self.model(x), y)
            (loss / self.config["accumulate"]).backward()
            if (i + 1) % self.config["accumulate"] == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            mean += loss.item() / len(loader)
        return mean

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = next(iter(DataLoader(self.val, batch_size=len(self.val))))
        return self.criterion(self.model(x), y).sqrt().item()

    def run(self):
        for epoch in range(self.config["epochs"]):
            mean = self.train_epoch()
            if epoch % 3 == 1:
                print(f"epoch {epoch + 1}: mse {mean:.4f}  val rmse {self.validate():.3f} MW")


PowerCurveTrainer(CONFIG).run()
