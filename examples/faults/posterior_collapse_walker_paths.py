"""A conditional VAE forecasts where a walker goes, left, straight or right, with a weight of 20 on
the divergence, so that the latent says nothing.

The squared error is averaged over the path and the divergence is weighted 20: the encoder returns
the prior, the decoder ignores z and forecasts the mean of all ways. The place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss", "posterior*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PAST, FUTURE, LATENT = 6, 10, 4
settings = {"beta": 0.02 if healthy else 20.0, "lr": 2e-3, "steps": 900, "batch": 128}


def walkers(count):
    heading = torch.zeros(count, 1)
    speed = 0.7 + 0.6 * torch.rand(count, 1)
    turn = torch.randint(-1, 2, (count, 1)) * (0.13 + 0.04 * torch.rand(count, 1))
    headings = torch.cat(
        [heading.expand(-1, PAST), heading + turn * torch.arange(1, FUTURE + 1)], 1
    )
    steps = torch.stack([headings.cos(), headings.sin()], 2) * speed.unsqueeze(2)
    path = (steps + 0.05 * torch.randn_like(steps)).cumsum(1)
    path = (path - path[:, PAST - 1 : PAST]) / 4
    return {"past": path[:, : PAST - 1].flatten(1), "future": path[:, PAST:].flatten(1)}


class WalkerVAE(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.posterior = nn.Sequential(
            nn.Linear(2 * (PAST - 1 + FUTURE), width), nn.ReLU(), nn.Linear(width, 2 * LATENT)
        )
        self.decoder = nn.Sequential(
            nn.Linear(2 * (PAST - 1) + LATENT, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2 * FUTURE),
        )  # fmt: skip

    def decode(self, past, z):
        return self.decoder(torch.cat([past, z], 1))

    def forward(self, batch):
        code = self.posterior(torch.cat([batch["past"], batch["future"]], 1))
        mean, log_var = code.chunk(2, 1)
        z = mean + torch.randn_like(mean) * (log_var / 2).exp()
        return self.decode(batch["past"], z), mean, log_var


def elbo_terms(model, batch):
    forecast, mean, log_var = model(batch)
    reconstruction = (forecast - batch["future"]).pow(2).mean()
    divergence = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum(1).mean()
    return reconstruction, divergence


def best_of_twenty(model, batch):
    errors = []
    for _ in range(20):
        forecast = model.decode(batch["past"], torch.randn(len(batch["past"]), LATENT))
        errors.append((forecast - batch["future"]).pow(2).mean(1))
    return torch.stack(errors).amin(0).mean()


def main():
    data = walkers(2500)
    train = {name: part[:2000] for name, part in data.items()}
    val = {name: part[2000:] for name, part in data.items()}
    for name in data:
        mean, std = train[name].mean(0), train[name].std(0).clamp(min=1e-2)
        train[name], val[name] = (train[name] - mean) / std, (val[name] - mean) / std
    model = WalkerVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"])
    for step in range(1, settings["steps"] + 1):
        rows = torch.randint(0, 2000, (settings["batch"],))
        batch = {name: part[rows] for name, part in train.items()}
        reconstruction, divergence = elbo_terms(model, batch)
        loss = reconstruction + settings["beta"] * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            with torch.no_grad():
                error, kl = elbo_terms(model, val)
                best = best_of_twenty(model, val)
            print(f"step {step:3d} loss {loss.item():.3f} validation: error {error:.3f} "
                  f"divergence {kl:.3f} best of 20 {best:.3f}")  # fmt: skip


main()
