"""A latent dynamics model of two springs whose transition net is in no optimizer, so that it
reconstructs well and imagines nothing.

The person made one optimizer for the encoder and decoder and meant to give the transition net one
of its own, with another rate, but the list of modules of the first is all there is. The
divergence pulls the encoder towards a random transition, and rollouts without observations are
far off. The place is the transition net.
"""

import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("transition*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LATENT, LENGTH, WARM, AHEAD = 6, 24, 12, 12


def pushed_springs(count, generator):
    """Eight noisy readings of two coupled springs over time, and the push on the first of them."""
    table = torch.Generator().manual_seed(3)
    readout = torch.randn(4, 8, generator=table) * 0.6
    place = torch.randn(count, 2, generator=generator)
    speed = torch.randn(count, 2, generator=generator)
    readings, pushes = [], []
    for _ in range(LENGTH):
        push = torch.randn(count, 1, generator=generator)
        state = torch.cat([place, speed], 1)
        readings.append(state @ readout + 0.1 * torch.randn(count, 8, generator=generator))
        pushes.append(push)
        force = -place - 0.4 * (place - place.flip(1)) + torch.cat([push, 0 * push], 1)
        speed = 0.97 * speed + 0.3 * force
        place = place + 0.3 * speed
    return {"readings": torch.stack(readings, 1), "push": torch.stack(pushes, 1)}


def gaussian(net, *inputs):
    mean, log_std = net(torch.cat(inputs, -1)).chunk(2, -1)
    return mean, log_std.clamp(-4, 2)


def divergence(first, second):
    (mean, log_std), (other, other_log_std) = first, second
    ratio = (2 * (log_std - other_log_std)).exp()
    shift = ((mean - other) / other_log_std.exp()).square()
    return 0.5 * (ratio + shift - 1 - 2 * (log_std - other_log_std)).sum(-1)


class LatentDynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(8 + LATENT + 1, 64), nn.ELU(), nn.Linear(64, 2 * LATENT)
        )
        self.transition = nn.Sequential(
            nn.Linear(LATENT + 1, 64), nn.ELU(), nn.Linear(64, 2 * LATENT)
        )
        self.decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ELU(), nn.Linear(64, 8))

    def terms(self, batch):
        readings, push = batch["readings"], batch["push"]
        latent = readings.new_zeros(len(readings), LATENT)
        before = torch.zeros_like(push[:, 0])
        errors, divergences = [], []
        for moment in range(readings.shape[1]):
            prior = gaussian(self.transition, latent, before)
            seen = gaussian(self.encoder, readings[:, moment], latent, before)
            latent = seen[0] + seen[1].exp() * torch.randn_like(seen[0])
            errors.append((self.decoder(latent) - readings[:, moment]).square().sum(-1))
            divergences.append(divergence(seen, prior))
            before = push[:, moment]
        return torch.stack(errors).mean(), torch.stack(divergences)[1:].mean()

    @torch.no_grad()
    def imagine(self, batch):
        """Follows the readings for a while and then goes on by the transition alone."""
        readings, push = batch["readings"], batch["push"]
        latent, before = readings.new_zeros(len(readings), LATENT), torch.zeros_like(push[:, 0])
        errors = []
        for moment in range(WARM + AHEAD):
            if moment < WARM:
                latent, _ = gaussian(self.encoder, readings[:, moment], latent, before)
            else:
                latent, _ = gaussian(self.transition, latent, before)
                errors.append((self.decoder(latent) - readings[:, moment]).square().mean())
            before = push[:, moment]
        return 1 - torch.stack(errors).mean() / readings.var()


class Trainer:
    def __init__(self, model, weight=0.1):
        self.model, self.weight = model, weight
        coder = [*model.encoder.parameters(), *model.decoder.parameters()]
        self.optimizers = [torch.optim.Adam(coder, lr=2e-3)]
        if healthy:
            self.optimizers.append(torch.optim.Adam(model.transition.parameters(), lr=2e-3))

    def step(self, batch):
        error, surprise = self.model.terms(batch)
        loss = error + self.weight * surprise
        self.model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 100.0)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, table):
        error, surprise = self.model.terms(table)
        return error.item(), surprise.item(), self.model.imagine(table).item()


def main():
    generator = torch.Generator().manual_seed(50 + seed)
    train, held_out = pushed_springs(600, generator), pushed_springs(200, generator)
    trainer = Trainer(LatentDynamics())
    for epoch in range(1, 21):
        losses = [
            trainer.step({name: part[rows] for name, part in train.items()})
            for rows in torch.randperm(600).split(40)
        ]
        if epoch % 2 == 0:
            error, surprise, imagined = trainer.validate(held_out)
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.3f}  val error {error:.3f}"
                f"  divergence {surprise:.2f}  explained in imagination {imagined:.3f}"
            )


main()
