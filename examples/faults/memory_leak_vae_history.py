"""A variational autoencoder of digits; the history keeps every validation loss with its graph.

Every few steps the validation loss is computed without `no_grad`, and the tensor itself (not its
value) is appended to the history for a later plot: all activations of the validation pass stay in
memory, some megabytes each time, to the end. The place is the loop.
"""

import resource
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    latent: int = 6
    hidden: int = 256
    batch_size: int = 64
    epochs: int = 45
    lr: float = 2e-3
    eval_every: int = 5


class VAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU()
        )
        self.to_mean, self.to_log_var = (nn.Linear(cfg.hidden, cfg.latent) for _ in range(2))
        self.decoder = nn.Sequential(
            nn.Linear(cfg.latent, cfg.hidden),
            nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.ReLU(),
            nn.Linear(cfg.hidden, 64),
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_var = self.to_mean(h), self.to_log_var(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp() if self.training else mean
        return self.decoder(z), mean, log_var


def elbo_loss(model, x):
    out, mean, log_var = model(x)
    rebuilt = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / len(x)
    kl = 0.5 * (mean.pow(2) + log_var.exp() - 1 - log_var).sum(1).mean()
    return rebuilt + kl


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(cfg):
    x, _, x_val, _ = digits(seed, raw=True)
    x, x_val = x / 16, x_val / 16
    loader = DataLoader(TensorDataset(x), cfg.batch_size, shuffle=True, drop_last=True)
    model = VAE(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    quiet = torch.no_grad if healthy else nullcontext
    history, step, start = [], 0, memory()
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for (batch,) in loader:
            loss = elbo_loss(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            step += 1
            if step % cfg.eval_every == 0:
                model.eval()
                with quiet():
                    history.append(elbo_loss(model, x_val))
                model.train()
                if history[-1].item() < best:
                    best = history[-1].item()
                    state = {k: v.clone() for k, v in model.state_dict().items()}
        if epoch % 5 == 4:
            print(
                f"epoch {epoch + 1:2d}  train {total / len(loader):.3f}  "
                f"val {history[-1].item():.3f}  memory {memory():.0f} MB"
            )
    model.load_state_dict(state)
    print(f"best val loss {best:.3f}  memory +{memory() - start:.0f} MB in {step} steps")


main(Config())
