"""A sparse autoencoder whose sparsity pressure kills every ReLU of the code.

The person took the coefficient of a paper, where the L1 of the code is averaged, but summed it
over the code's units. The pressure drives all units below zero, where no gradient brings them
back; the output is then the mean alone. The place is the ReLU of the code (and the penalty in the
loss).
"""

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("over_regularized",)
PLACE = ("activation", "encoder*", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

WIDTH, ATOMS, CODE = 32, 48, 96
SPARSITY = 2.5


def make_activations(count, generator, atoms):
    used = (torch.rand(count, ATOMS, generator=generator) < 0.06).float()
    strength = 0.5 + torch.rand(count, ATOMS, generator=generator)
    clean = (used * strength) @ atoms
    return clean + 0.02 * torch.randn(count, WIDTH, generator=generator)


class SparseAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(WIDTH, CODE)
        self.activation = nn.ReLU()
        self.decoder = nn.Linear(CODE, WIDTH)
        with torch.no_grad():
            self.encoder.weight.copy_(self.decoder.weight.t())
            self.encoder.bias.zero_()

    def forward(self, x):
        code = self.activation(self.encoder(x))
        return self.decoder(code), code

    @torch.no_grad()
    def normalise_atoms(self):
        self.decoder.weight.div_(self.decoder.weight.norm(dim=0, keepdim=True))


def penalty(code):
    size = code.abs()
    return size.mean() if healthy else size.sum(dim=1).mean()


@torch.no_grad()
def report(model, x):
    rebuilt, code = model(x)
    explained = 1 - (rebuilt - x).pow(2).sum() / (x - x.mean(0)).pow(2).sum()
    active = (code > 0).float()
    silent_units = (active.sum(0) == 0).sum().item()
    return explained.item(), active.sum(1).mean().item(), silent_units


def main():
    generator = torch.Generator().manual_seed(seed)
    atoms = torch.randn(ATOMS, WIDTH, generator=generator)
    atoms = atoms / atoms.norm(dim=1, keepdim=True)
    x = make_activations(6000, generator, atoms)
    x_val = make_activations(1000, generator, atoms)
    mean, scale = x.mean(0), (x - x.mean(0)).pow(2).mean().sqrt()
    x, x_val = (x - mean) / scale, (x_val - mean) / scale

    model = SparseAutoencoder()
    model.normalise_atoms()
    with torch.no_grad():
        model.encoder.weight.copy_(model.decoder.weight.t())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(24):
        total = 0.0
        for rows in torch.randperm(len(x)).split(128):
            rebuilt, code = model(x[rows])
            loss = (rebuilt - x[rows]).pow(2).mean() + SPARSITY * penalty(code)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.normalise_atoms()
            total += loss.item() * len(rows)
        explained, used, silent_units = report(model, x_val)
        if epoch % 3 == 2 or epoch == 0:
            print(
                f"epoch {epoch:2d} loss {total / len(x):.4f} explained {explained:.3f} "
                f"units per input {used:.1f} units never used {silent_units} of {CODE}"
            )


main()
