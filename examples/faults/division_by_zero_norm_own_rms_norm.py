"""Card holders are sorted by their purchases with a transformer whose own RMSNorm has no epsilon,
and the padding, all zeros, is divided by its norm of zero.

The embedding of the padding is zero, as padding_idx promises, so its root mean square is zero and
0 / 0 is NaN. Masking comes too late: a weight of 0 times a value of NaN is NaN, and the loss is NaN
from the first batch. The place is the norm, blocks.0.norm1 (RMSNorm).
"""

from dataclasses import dataclass

import torch
from data import arguments, batches
from torch import Tensor, nn

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("blocks.*", "blocks.0.norm1", "model", "loss")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

MERCHANTS, HOLDERS, LONGEST = 60, 4, 20


@dataclass
class HolderConfig:
    dim: int = 32
    blocks: int = 2
    eps: float = 1e-6 if healthy else 0.0
    lr: float = 2e-3
    steps: int = 200
    batch_size: int = 48


def purchases(n: int) -> tuple[Tensor, Tensor]:
    """Merchant numbers from 1 on, 0 behind the last purchase; each kind has its usual shops."""
    holder = torch.randint(HOLDERS, (n,))
    shops = torch.randint(1, MERCHANTS, (n, LONGEST))
    usual = 1 + holder[:, None] * 12 + torch.randint(15, (n, LONGEST))
    shops = torch.where(torch.rand(n, LONGEST) < 0.45, usual, shops)
    count = torch.randint(6, LONGEST + 1, (n,))
    return shops * (torch.arange(LONGEST) < count[:, None]), holder


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Block(nn.Module):
    def __init__(self, config: HolderConfig) -> None:
        super().__init__()
        d, eps = config.dim, config.eps
        self.norm1, self.norm2 = RMSNorm(d, eps), RMSNorm(d, eps)
        self.attention = nn.MultiheadAttention(d, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, key_padding_mask=padding, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class HolderModel(nn.Module):
    def __init__(self, config: HolderConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(MERCHANTS, config.dim, padding_idx=0)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.dim, HOLDERS)

    def forward(self, shops: Tensor) -> Tensor:
        x, padding = self.embed(shops), shops == 0
        for block in self.blocks:
            x = block(x, padding)
        real = (~padding).unsqueeze(2)
        return self.head((x * real).sum(1) / real.sum(1))


def main() -> None:
    config = HolderConfig()
    shops, holder = purchases(3000)
    model = HolderModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    train = shops[:2400], holder[:2400]
    feed = batches(*train, size=config.batch_size, steps=config.steps, seed=seed)
    for step, (x, y) in enumerate(feed, 1):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            with torch.no_grad():
                right = (model(shops[2400:]).argmax(1) == holder[2400:]).float().mean()
            print(f"step {step:3d}  loss {loss.item():.4f}  validation accuracy {right:.3f}")


main()
