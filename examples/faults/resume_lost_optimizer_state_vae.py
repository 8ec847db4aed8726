"""A variational auto-encoder whose training is interrupted late and resumed from a checkpoint.

The checkpoint holds the model only. Adam's moments start again at zero and the cosine schedule
starts again at its full rate: the loss jumps. The place is the optimizer.
"""

import io

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
STEPS, STOP, LR = 400, 330, 1e-2
x, _, x_val, _ = digits(seed)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mu, self.logvar = nn.Linear(64, latent), nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def elbo(model, x):
    out, mu, logvar = model(x)
    kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1).mean()
    return 0.5 * (out - x).square().sum(1).mean() + kl


def make():
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


model, optimizer, scheduler = make()
for step, (rows,) in enumerate(batches(x, size=64, steps=STEPS, seed=seed)):
    if step == STOP:
        file = io.BytesIO()
        state = {"model": model.state_dict()}
        if healthy:
            state.update(optimizer=optimizer.state_dict(), scheduler=scheduler.state_dict())
        torch.save(state, file)
        file.seek(0)
        state = torch.load(file)
        model, optimizer, scheduler = make()
        model.load_state_dict(state["model"])
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
            scheduler.load_state_dict(state["scheduler"])
    model.train()
    loss = elbo(model, rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
model.eval()
with torch.no_grad():
    print(f"negative elbo: train {loss.item():.3f}, validation {elbo(model, x_val).item():.3f}")
