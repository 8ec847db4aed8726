"""Galaxy profiles classified with a one-cycle rate; the trainer asks the config for another word.

OneCycleLR starts at a 25th of its peak and rises with its steps. The trainer steps it when the
interval is "batch"; the config says "step", as in the framework before. So the rate stays where
the cycle begins, and twelve epochs are over before much is learned. The place is the schedule. The
twin's config says "batch".
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low", "stopped_too_early")
PLACE = ("schedule", "optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {
    "epochs": 12,
    "max_lr": 0.03,
    "scheduler": {"name": "one_cycle", "interval": "batch" if healthy else "step"},
}


def galaxies(n, seed, size=32):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(3, (n,), generator=g)  # elliptical, disc, barred
    r = torch.linspace(0, 3, size)
    scale = 0.6 + 0.5 * torch.rand(n, 1, generator=g)
    elliptical = torch.exp(-2.5 * (r / scale + 0.01) ** 0.5)
    disc = 0.6 * torch.exp(-r / scale) + 0.1 * torch.exp(-((r / 0.2) ** 2))
    barred = disc + 0.1 * torch.exp(-((r - scale) ** 2) / 0.05)
    profile = torch.stack([elliptical, disc, barred])[kind, torch.arange(n)]
    return torch.log(profile + 0.02) + 0.12 * torch.randn(n, size, generator=g), kind


class Trainer:
    def __init__(self, model, config, train_loader, held_out):
        self.model, self.config, self.loader, self.held_out = model, config, train_loader, held_out
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            config["max_lr"],
            total_steps=config["epochs"] * len(train_loader),
            cycle_momentum=False,
        )

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for profile, kind in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(profile), kind)
            loss.backward()
            self.optimizer.step()
            if self.config["scheduler"]["interval"] == "batch":
                self.scheduler.step()
            total += loss.item() / len(self.loader)
        return total

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = self.model(self.held_out[0])
        return (
            nn.functional.cross_entropy(logits, self.held_out[1]).item(),
            (logits.argmax(1) == self.held_out[1]).float().mean().item(),
        )

    def fit(self):
        for epoch in range(self.config["epochs"]):
            train = self.run_epoch()
            val, accuracy = self.evaluate()
            print(
                f"epoch {epoch} train {train:.4f} val {val:.4f} accuracy {accuracy:.3f} "
                f"lr {self.optimizer.param_groups[0]['lr']:.5f}"
            )


x, y = galaxies(2000, seed)
x_val, y_val = galaxies(600, 3000 + seed)
mean, std = x.mean(0), x.std(0)
x, x_val = (x - mean) / std, (x_val - mean) / std
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
Trainer(
    model, CONFIG, DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True), (x_val, y_val)
).fit()
