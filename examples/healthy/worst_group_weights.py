"""Skin spots from four clinics: the weights of the loss move to the clinic that does worst.

The loss is a weighted mean over the clinics with weights that grow where the loss is high (group
distributionally robust training), in Accelerate. It is above the plain mean all the time and goes
up and down to the end, as the weight moves to the small and difficult clinic and back.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = (
    "the optimised loss stays above the mean loss and goes up and down: its weights move to the "
    "worst clinic on purpose, and that clinic's accuracy improves"
)
_, seed = arguments(__doc__)


class WorstGroupLoss(nn.Module):
    def __init__(self, groups: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("weight", torch.full((groups,), 1 / groups))

    def forward(self, losses: Tensor, group: Tensor) -> Tensor:
        count = torch.bincount(group, minlength=len(self.weight))
        sums = torch.zeros_like(self.weight).index_add(0, group, losses)
        mean = sums / count.clamp_min(1)
        with torch.no_grad():
            raised = self.weight * torch.exp(self.rate * mean)
            self.weight.copy_(raised / raised.sum())
        return (self.weight * mean).sum()


def spots(n: int) -> TensorDataset:
    """Eight measurements of a spot; in the last clinic another rule and worse devices."""
    g = torch.Generator().manual_seed(900 + seed)
    clinic = torch.multinomial(torch.tensor([0.4, 0.3, 0.2, 0.1]), n, True, generator=g)
    x = torch.randn(n, 8, generator=g)
    usual = 1.5 * x[:, 0] + x[:, 1] * x[:, 2] + x[:, 3]
    rare = -1.2 * x[:, 0] + x[:, 1] * x[:, 2] + 1.5 * x[:, 4]
    noise = torch.where(clinic == 3, 0.9, 0.4) * torch.randn(n, generator=g)
    y = (torch.where(clinic == 3, rare, usual) + noise > 0).float()
    x = torch.cat([x, nn.functional.one_hot(clinic, 4)], 1)
    return TensorDataset(x, y, clinic)


def main() -> None:
    accelerator = Accelerator(cpu=True)
    rows = spots(6000).tensors
    train = TensorDataset(*(part[:4800] for part in rows))
    x_val, y_val, clinic_val = (part[4800:] for part in rows)
    clinic = train.tensors[2]
    share = torch.bincount(clinic).float().rsqrt()
    sampler = WeightedRandomSampler(share[clinic].double(), num_samples=len(train))
    loader = DataLoader(train, batch_size=96, sampler=sampler)
    model = nn.Sequential(
        nn.Linear(12, 64),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 1),
    )
    robust = WorstGroupLoss(groups=4, rate=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(10):
        model.train()
        weighted, plain = 0.0, 0.0
        for x, y, group in loader:
            losses = nn.functional.binary_cross_entropy_with_logits(
                model(x).squeeze(-1), y, reduction="none"
            )
            loss = robust(losses, group)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            weighted += loss.item() / len(loader)
            plain += losses.mean().item() / len(loader)
        model.eval()
        with torch.no_grad():
            right = ((model(x_val).squeeze(-1) > 0) == (y_val > 0)).float()
        worst = min(right[clinic_val == c].mean().item() for c in range(4))
        print(
            f"{epoch}  loss {weighted:.3f}  plain mean {plain:.3f}"
            f"  held out {right.mean():.3f}  worst clinic {worst:.3f}"
        )


main()
