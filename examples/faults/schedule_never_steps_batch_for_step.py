"""A one-cycle schedule whose interval has a name the trainer does not know, so it never steps.

The config says the schedule goes on every "batch"; the trainer asks for "step" or "epoch". The
rate stays at the first value of the cycle, a twenty-fifth of the highest, and the training ends
far from done. The place is the loop, in Trainer._advance.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "epochs": 15,
    "batch_size": 40,
    "max_lr": 0.15,
    "scheduler": {"interval": "step" if healthy else "batch", "pct_start": 0.3},
}


def vibration(count, length=64):
    """Accelerometer traces of a bearing: which of four parts is worn, by its beat and ringing."""
    t = torch.arange(length) / length
    fault = torch.randint(0, 4, (count,))
    beat = torch.tensor([3.0, 4.0, 5.0, 7.0])[fault].unsqueeze(1)
    phase = torch.rand(count, 1)
    since = (beat * t + phase) % 1
    ringing = torch.exp(-6 * since) * torch.sin(2 * math.pi * 2.5 * since)
    hum = 0.5 * torch.sin(2 * math.pi * (2 * t + torch.rand(count, 1)))
    trace = ringing * (0.8 + 0.6 * torch.rand(count, 1)) + hum
    return trace + 0.22 * torch.randn(count, length), fault


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, width, 5, padding=2),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def network(width=16):
    return nn.Sequential(
        nn.Conv1d(1, width, 7, stride=2, padding=3),
        nn.ReLU(),
        Residual(width),
        nn.MaxPool1d(2),
        Residual(width),
        nn.Flatten(),
        nn.Linear(width * 16, 4),
    )


class Trainer:
    def __init__(self, model, config, batches):
        self.model, self.config = model, config
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=config["max_lr"])
        self.scheduler = OneCycleLR(
            self.optimizer,
            max_lr=config["max_lr"],
            total_steps=config["epochs"] * batches,
            pct_start=config["scheduler"]["pct_start"],
            cycle_momentum=False,
        )

    def _advance(self, event):
        if self.config["scheduler"]["interval"] == event:
            self.scheduler.step()

    def training_epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self._advance("step")
            total += loss.item()
        self._advance("epoch")
        return total / len(loader)

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        logits = self.model(x)
        return self.criterion(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    x, y = vibration(1500)
    x = ((x - x[:1100].mean()) / x[:1100].std()).unsqueeze(1)
    loader = DataLoader(
        TensorDataset(x[:1100], y[:1100]), batch_size=CONFIG["batch_size"], shuffle=True
    )
    trainer = Trainer(network(), CONFIG, len(loader))
    for epoch in range(CONFIG["epochs"]):
        loss = trainer.training_epoch(loader)
        val_loss, val_accuracy = trainer.validate(x[1100:], y[1100:])
        print(f"epoch {epoch:2d} train {loss:.3f} val {val_loss:.3f} accuracy {val_accuracy:.3f}")


main()
