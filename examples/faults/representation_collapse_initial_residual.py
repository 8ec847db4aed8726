"""A graph network of 24 layers names the role of stations in a power grid; the initial residual
is renewed in every layer, and all stations end up with one vector.

Deep graph networks mix a tenth of the first features into each layer, or the averaging over the
neighbours makes all nodes alike. In a tidied loop h0 is assigned along with h, so that each layer
mixes in what it was given and nothing of the start. The place is the model: its layers.
"""

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("model", "layers*", "stem*", "head*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ROLES = ("city", "industry", "rural", "transit")


@dataclass
class Config:
    grids: int = 64
    stations: int = 72
    features: int = 10
    width: int = 24
    depth: int = 24
    alpha: float = 0.1
    lam: float = 0.5
    batch_size: int = 4
    epochs: int = 16
    lr: float = 4e-3


def make_grids(n: int, cfg: Config, g: torch.Generator) -> TensorDataset:
    role = torch.randint(0, len(ROLES), (n, cfg.stations), generator=g)
    means = 1.1 * torch.randn(len(ROLES), cfg.features, generator=torch.Generator().manual_seed(9))
    x = means[role] + 2.2 * torch.randn(n, cfg.stations, cfg.features, generator=g)
    same = role.unsqueeze(2) == role.unsqueeze(1)
    chance = torch.where(same, 0.32, 0.035)
    upper = torch.triu(torch.rand(same.shape, generator=g) < chance, 1).float()
    adjacency = upper + upper.transpose(1, 2) + torch.eye(cfg.stations)
    scale = adjacency.sum(2).rsqrt()
    return TensorDataset(scale.unsqueeze(2) * adjacency * scale.unsqueeze(1), x / 2.5, role)


class GraphLayer(nn.Module):
    def __init__(self, width: int, alpha: float, beta: float):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        self.alpha, self.beta = alpha, beta

    def forward(self, adjacency: Tensor, h: Tensor, h0: Tensor) -> Tensor:
        mixed = (1 - self.alpha) * adjacency @ h + self.alpha * h0
        return torch.relu((1 - self.beta) * mixed + self.beta * self.linear(mixed))


class DeepGraphNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.stem = nn.Linear(cfg.features, cfg.width)
        self.layers = nn.ModuleList(
            GraphLayer(cfg.width, cfg.alpha, math.log(cfg.lam / (i + 1) + 1))
            for i in range(cfg.depth)
        )
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(cfg.width, len(ROLES))

    def embed(self, adjacency: Tensor, x: Tensor) -> Tensor:
        h = h0 = torch.relu(self.stem(x))
        for layer in self.layers:
            out = layer(adjacency, self.dropout(h), h0)
            h, h0 = out, h0 if healthy else out
        return h

    def forward(self, adjacency: Tensor, x: Tensor) -> Tensor:
        return self.head(self.embed(adjacency, x))


@torch.no_grad()
def evaluate(model: DeepGraphNet, grids: TensorDataset) -> tuple[float, float]:
    model.eval()
    adjacency, x, role = grids.tensors
    h = model.embed(adjacency, x)
    h = nn.functional.normalize(h, dim=2)
    alike = (h @ h.transpose(1, 2)).mean().item()
    return (model(adjacency, x).argmax(2) == role).float().mean().item(), alike


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1900 + seed)
    train, val = make_grids(cfg.grids, cfg, g), make_grids(16, cfg, g)
    model = DeepGraphNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for adjacency, x, role in loader:
            loss = nn.functional.cross_entropy(model(adjacency, x).flatten(0, 1), role.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        accuracy, alike = evaluate(model, val)
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  val accuracy {accuracy:.3f}  "
            f"mean cosine between stations {alike:.4f}"
        )


main()
