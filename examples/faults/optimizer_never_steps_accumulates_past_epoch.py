"""A conditional VAE on digits with gradient accumulation; an epoch has fewer batches than are
accumulated.

The update happens when (i + 1) % accumulate == 0 with i counted inside the epoch, and the epoch
begins by clearing the gradients. An epoch has 10 batches, accumulate was set to 16 for a larger
data set: no update ever happens. The place is the loop.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class TrainerConfig:
    epochs: int = 90
    batch_size: int = 128
    accumulate: int = 2 if healthy else 16
    lr: float = 3e-3
    beta_max: float = 1.0
    beta_warmup: int = 20
    latent: int = 8
    history: list = field(default_factory=list)


class CVAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64 + 10, 128), nn.SiLU(), nn.Linear(128, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent + 10, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, x, c):
        mu, log_var = self.enc(torch.cat([x, c], 1)).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * log_var).exp()
        return self.dec(torch.cat([z, c], 1)), mu, log_var

    def elbo_terms(self, x, c):
        logits, mu, log_var = self(x, c)
        rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
        kl = -0.5 * (1 + log_var - mu**2 - log_var.exp()).sum(1).mean()
        return rec, kl


class Trainer:
    def __init__(self, model, cfg, train, val):
        self.model, self.cfg = model, cfg
        self.train_loader = DataLoader(train, cfg.batch_size, shuffle=True, drop_last=True)
        self.val = val
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 30, 0.5)

    def train_epoch(self, epoch):
        self.model.train()
        beta = self.cfg.beta_max * min(1.0, (epoch + 1) / self.cfg.beta_warmup)
        self.opt.zero_grad()
        total = 0.0
        for i, (x, c) in enumerate(self.train_loader):
            rec, kl = self.model.elbo_terms(x, c)
            loss = (rec + beta * kl) / self.cfg.accumulate
            loss.backward()
            if (i + 1) % self.cfg.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 20.0)
                self.opt.step()
                self.opt.zero_grad()
            total += (rec + kl).item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        rec, kl = self.model.elbo_terms(*self.val)
        return (rec + kl).item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            train = self.train_epoch(epoch)
            if self.opt.state:
                self.sched.step()
            self.cfg.history.append((train, self.validate()))
            if epoch % 15 == 14:
                print(
                    "epoch %d train -elbo %.3f val -elbo %.3f" % (epoch + 1, *self.cfg.history[-1])  # noqa: UP031
                )


x, y, x_val, y_val = digits(seed, raw=True)
onehot = lambda t: F.one_hot(t, 10).float()  # noqa: E731
train_set = TensorDataset(x / 16, onehot(y))
Trainer(CVAE(8), TrainerConfig(), train_set, (x_val / 16, onehot(y_val))).fit()
