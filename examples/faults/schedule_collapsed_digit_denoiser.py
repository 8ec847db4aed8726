"""Cleans noisy digits with a small autoencoder; the learning rate dies within the second epoch.

ExponentialLR with 0.9 was meant for the end of an epoch. When the loop was tidied up, the call
slipped into the loop over batches: with 42 batches an epoch the rate is a hundredth after one
epoch, and nothing after two.
The place is the schedule. The twin steps once an epoch.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = False


class Denoiser:
    """Encoder and decoder with what is needed to fit them."""

    def __init__(self, config):
        self.config = config
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 64))
        parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=config["lr"])
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, config["gamma"])

    def restore(self, noisy):
        return self.decoder(self.encoder(noisy))

    def train_epoch(self, x):
        total, count = 0.0, 0
        for rows in torch.randperm(len(x)).split(self.config["batch"]):
            clean = x[rows]
            noisy = clean + self.config["noise"] * torch.randn_like(clean)
            loss = nn.functional.mse_loss(self.restore(noisy), clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.config["decay"] == "batch":
                self.scheduler.step()
            total, count = total + loss.item(), count + 1
        if self.config["decay"] == "epoch":
            self.scheduler.step()
        return total / count

    @torch.no_grad()
    def validate(self, x, noisy):
        return nn.functional.mse_loss(self.restore(noisy), x).item()


healthy, seed = arguments(__doc__)
config = {
    "lr": 3e-3,
    "gamma": 0.9,
    "batch": 32,
    "noise": 0.7,
    "epochs": 20,
    "decay": "epoch" if healthy else "batch",
}
x, _, x_val, _ = digits(seed)
noisy_val = x_val + config["noise"] * torch.randn_like(x_val)
model = Denoiser(config)
for epoch in range(config["epochs"]):
    train_loss = model.train_epoch(x)
    if epoch % 2 == 1:
        val_loss = model.validate(x_val, noisy_val)
        print(f"epoch {epoch + 1:2d}  train {train_loss:.4f}  val {val_loss:.4f}")
