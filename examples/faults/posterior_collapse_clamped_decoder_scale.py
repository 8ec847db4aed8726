"""A variational autoencoder of strain curves learns its output scale, clamped to one or more for
safety, while the data spread by 0.2.

The person let the decoder learn the logarithm of its noise and, after a first run gave infinite
losses, clamped it from below at zero. The curves are strains between 0 and 1, so that a noise of
one swallows all there is; no code is worth its divergence, and all curves are answered by their
mean. The place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "encoder*", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS, LATENT = 30, 4
LOWEST_LOG_SCALE = -4.0 if healthy else 0.0


def strain_curves(count, generator):
    """Tensile tests: a steep part, a bend at the yield point, hardening, and necking at the end."""
    load = torch.linspace(0, 1, POINTS)

    def draw(low, high):
        return low + (high - low) * torch.rand(count, 1, generator=generator)

    yielding, stiffness = draw(0.2, 0.6), draw(0.6, 1.4)
    hardening, necking = draw(0.1, 0.6), draw(0.75, 0.95)
    elastic = stiffness * torch.minimum(load.expand(count, -1), yielding)
    plastic = hardening * (load - yielding).clamp(min=0)
    curve = elastic + plastic - 1.5 * (load - necking).clamp(min=0)
    return curve + 0.02 * torch.randn(count, POINTS, generator=generator)


class StrainCoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(POINTS, 64),
            nn.SiLU(),
            nn.Linear(64, 64),
            nn.SiLU(),
            nn.Linear(64, 2 * LATENT),
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, POINTS)
        )
        self.log_scale = nn.Parameter(torch.tensor(-1.5))
        self.register_buffer("mean", torch.zeros(POINTS))
        self.register_buffer("std", torch.ones(POINTS))

    def measure(self, curves):
        self.mean, self.std = curves.mean(0), curves.std(0)

    def posterior(self, curve):
        return self.encoder((curve - self.mean) / self.std).chunk(2, 1)

    def forward(self, curve):
        mean, log_variance = self.posterior(curve)
        code = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        return self.decoder(code) + self.mean, mean, log_variance


class Bound:
    def __init__(self, coder):
        self.coder = coder

    def terms(self, curve):
        rebuilt, mean, log_variance = self.coder(curve)
        log_scale = self.coder.log_scale.clamp(min=LOWEST_LOG_SCALE)
        squares = ((curve - rebuilt) / log_scale.exp()).square()
        unlikely = (0.5 * squares + log_scale + 0.5 * math.log(2 * math.pi)).sum(1).mean()
        apart = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        error = (curve - rebuilt).square().mean()
        return {"unlikely": unlikely, "divergence": apart, "error": error}


def main():
    generator = torch.Generator().manual_seed(19 + seed)
    curves, held_out = strain_curves(1200, generator), strain_curves(400, generator)
    coder = StrainCoder()
    coder.measure(curves)
    bound = Bound(coder)
    nets = [*coder.encoder.parameters(), *coder.decoder.parameters()]
    groups = [{"params": nets, "lr": 2e-3}, {"params": [coder.log_scale], "lr": 1e-2}]
    optimizer = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    for epoch in range(1, 51):
        coder.train()
        losses = []
        for rows in torch.randperm(len(curves)).split(60):
            terms = bound.terms(curves[rows])
            loss = terms["unlikely"] + terms["divergence"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        if epoch % 5 == 0:
            coder.eval()
            with torch.no_grad():
                terms = {name: term.item() for name, term in bound.terms(held_out).items()}
            explained = 1 - terms["error"] / (held_out - coder.mean).square().mean().item()
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.3f}"
                f"  val {terms['unlikely'] + terms['divergence']:.3f}"
                f"  divergence {terms['divergence']:.3f}  explained {explained:.3f}"
            )


main()
