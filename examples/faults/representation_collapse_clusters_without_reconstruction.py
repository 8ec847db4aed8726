"""Deep clustering of leaf outlines by soft k-means, with a weight of 0 for the reconstruction.

The codes are drawn to six learnt centres, each code mostly to the nearest. With nothing that asks
the codes to keep the outlines apart, all outlines and all centres end in one point, where the pull
is nought. The place is the loss; the codes of `encoder`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from torch import Tensor, nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "encoder", "encoder.*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    species: int = 6
    points: int = 32
    code: int = 6
    batch: int = 64
    steps: int = 600
    pull: float = 0.02
    reconstruction: float = 1.0 if healthy else 0.0


class OutlineAutoencoder(nn.Module):
    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(inputs, 64),
            nn.GELU(),
            nn.Linear(64, 32),
            nn.GELU(),
            nn.Linear(32, config.code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(config.code, 32),
            nn.GELU(),
            nn.Linear(32, 64),
            nn.GELU(),
            nn.Linear(64, inputs),
        )
        self.centres = nn.Parameter(torch.randn(config.species, config.code) * 0.3)

    def forward(self, outlines: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(outlines)
        return code, self.decoder(code)

    def pull(self, code: Tensor) -> Tensor:
        distance = (code[:, None] - self.centres).square().sum(-1)
        return (distance.neg().softmax(-1) * distance).sum(-1).mean()


def leaves(n: int, config: Config) -> tuple[Tensor, Tensor]:
    """Distances of the rim from the middle of a leaf, with the lobes of its species."""
    g = torch.Generator().manual_seed(500 + seed)
    form = torch.randn(config.species, 5, 2, generator=g) * 0.25
    species = torch.randint(0, config.species, (n,), generator=g)
    own = form[species] + 0.11 * torch.randn(n, 5, 2, generator=g)
    angle = torch.arange(config.points) / config.points * 6.2832
    waves = torch.stack(
        [
            torch.outer(torch.arange(1, 6), angle).sin(),
            torch.outer(torch.arange(1, 6), angle).cos(),
        ],
        1,
    )
    rim = torch.einsum("nkp,kpt->nt", own, waves)
    rim = rim + 0.1 * torch.randn(n, config.points, generator=g)
    return (rim - rim.mean(0)) / rim.std(), species


def agreement(model: OutlineAutoencoder, outlines: Tensor, species: Tensor) -> tuple[float, float]:
    model.eval()
    with torch.no_grad():
        code, _ = model(outlines)
    cluster = KMeans(6, n_init=5, random_state=seed).fit_predict(code.numpy())
    return adjusted_rand_score(species, cluster), code.std(0).mean().item()


def main() -> None:
    config = Config()
    outlines, species = leaves(2400, config)
    train, held_out, held_out_species = outlines[:1800], outlines[1800:], species[1800:]
    model = OutlineAutoencoder(config.points, config)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, config.steps + 1):
        model.train()
        outline = train[torch.randint(0, len(train), (config.batch,))]
        code, again = model(outline)
        kept = nn.functional.mse_loss(again, outline)
        loss = config.pull * model.pull(code) + config.reconstruction * kept
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            rand, spread = agreement(model, held_out, held_out_species)
            print(f"{step}  loss {loss.item():.5f}  agreement {rand:.3f}  spread {spread:.5f}")


main()
