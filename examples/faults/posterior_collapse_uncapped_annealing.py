"""A conditional VAE foretells where people walk; its annealed KL weight never stops growing.

The weight of the divergence is step / warmup, so that it is 1 at the end of the warm-up, but the
min(1, ...) around it is missing. It reaches 28, and the posterior, which had learned whether
people turn left, right or go on, falls back on the prior: all sampled futures are alike. The
place is the loss (kl_weight).
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "posterior*", "prior*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PAST, FUTURE, LATENT = 6, 10, 3
OPTIONS = {"steps": 1400, "batch": 96, "lr": 2e-3, "warmup": 50, "sigma": 1.8}


def walkers(n: int, g: torch.Generator):
    """Steps of the past and the future; at a crossing people turn left, right or go straight on."""
    heading = 2 * math.pi * torch.rand(n, 1, generator=g)
    speed = 0.6 + 0.5 * torch.rand(n, 1, generator=g)
    way = torch.randint(-1, 2, (n, 1), generator=g)
    bend = 0.04 * torch.randn(n, 1, generator=g)
    t = torch.arange(PAST + FUTURE).float()
    turned = ((t - PAST - 1) / 4).clamp(0, 1) * way * 1.2
    angle = heading + bend * t + turned
    steps = speed.unsqueeze(2) * torch.stack([angle.cos(), angle.sin()], -1)
    steps = steps + 0.05 * torch.randn(steps.shape, generator=g)
    return steps[:, :PAST], steps[:, PAST:].cumsum(1)


def net(inside: int, outside: int, width: int = 64):
    return nn.Sequential(
        nn.Linear(inside, width),
        nn.ELU(),
        nn.Linear(width, width),
        nn.ELU(),
        nn.Linear(width, outside),
    )


class TrajectoryCVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.past_encoder = nn.GRU(2, 32, batch_first=True)
        self.prior = net(32, 2 * LATENT)
        self.posterior = net(32 + 2 * FUTURE, 2 * LATENT)
        self.decoder = net(32 + LATENT, 2 * FUTURE)

    def context(self, past):
        return self.past_encoder(past)[1][-1]

    def decode(self, context, z):
        return self.decoder(torch.cat([context, z], -1)).view(*z.shape[:-1], FUTURE, 2)

    def forward(self, past, future):
        context = self.context(past)
        p_mean, p_log_std = self.prior(context).chunk(2, 1)
        q_mean, q_log_std = self.posterior(torch.cat([context, future.flatten(1)], 1)).chunk(2, 1)
        z = q_mean + q_log_std.exp() * torch.randn_like(q_mean)
        ratio = (2 * (q_log_std - p_log_std)).exp()
        distance = (q_mean - p_mean) ** 2 / (2 * p_log_std).exp()
        kl = 0.5 * (ratio + distance - 1) - (q_log_std - p_log_std)
        return self.decode(context, z), kl.sum(1)

    def sample(self, past, count: int):
        context = self.context(past).expand(count, -1, -1)
        mean, log_std = self.prior(context).chunk(2, -1)
        return self.decode(context, mean + log_std.exp() * torch.randn_like(mean))


@torch.no_grad()
def report(model, past, future):
    model.eval()
    answers, kl = model(past, future)
    guesses = model.sample(past, 20)
    off = (guesses - future).norm(dim=-1).mean(-1)
    spread = guesses[:, :, -1].std(0).mean()
    return {
        "kl": kl.mean().item(),
        "ade": (answers - future).norm(dim=-1).mean().item(),
        "best_of_20": off.amin(0).mean().item(),
        "spread": spread.item(),
    }


def main():
    g = torch.Generator().manual_seed(1010 + seed)
    past, future = walkers(4000, g)
    past_val, future_val = walkers(600, g)
    model = TrajectoryCVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=OPTIONS["lr"])
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, OPTIONS["steps"], eta_min=1e-4)
    for step in range(1, OPTIONS["steps"] + 1):
        model.train()
        rows = torch.randint(0, len(past), (OPTIONS["batch"],))
        answers, kl = model(past[rows], future[rows])
        error = ((answers - future[rows]) ** 2).sum((1, 2)) / (2 * OPTIONS["sigma"] ** 2)
        kl_weight = step / OPTIONS["warmup"]
        if healthy:
            kl_weight = min(1.0, kl_weight)
        loss = (error + kl_weight * kl).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        decay.step()
        if step % 140 == 0:
            numbers = report(model, past_val, future_val)
            told = "  ".join(f"{name} {value:.3f}" for name, value in numbers.items())
            print(f"{step:5d}  error {error.mean().item():.2f}  {told}")


if __name__ == "__main__":
    main()
