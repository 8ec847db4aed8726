"""A two-task model of road wear whose gradient surgery leaves the gradients in a list.

The gradients of both tasks come from `torch.autograd.grad`; conflicting parts are projected out.
The merged gradients are never put into `.grad`: the optimizer finds none, each step does nothing.
The numbers wander with the batches only. The place is the loop: `surgery` and the step after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    rows: int = 3000
    batch: int = 64
    epochs: int = 8
    rate: float = 4e-3


class RoadModel(nn.Module):
    def __init__(self, columns: int, width: int = 48) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(columns, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.ReLU(),
        )
        self.rut = nn.Linear(width, 1)
        self.cracked = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.trunk(x)
        return self.rut(seen).squeeze(-1), self.cracked(seen).squeeze(-1)


def flat(gradients: tuple[Tensor | None, ...], like: list[nn.Parameter]) -> Tensor:
    pairs = zip(gradients, like, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])


def surgery(losses: list[Tensor], parameters: list[nn.Parameter]) -> list[Tensor]:
    """Each task's gradient without the part that works against the other's, summed."""
    raw = [
        flat(torch.autograd.grad(x, parameters, retain_graph=True, allow_unused=True), parameters)
        for x in losses
    ]
    merged = torch.zeros_like(raw[0])
    for own, other in (raw, raw[::-1]):
        clash = torch.dot(own, other).clamp(max=0)
        merged += own - clash / other.square().sum().clamp_min(1e-12) * other
    pieces = merged.split([p.numel() for p in parameters])
    return [piece.view_as(p) for piece, p in zip(pieces, parameters, strict=True)]


def roads(n: int) -> TensorDataset:
    """Traffic, age, thickness, frost, moisture, repairs; depth of the ruts, cracked or not."""
    x = torch.randn(n, 6)
    traffic, age, thick, frost, wet, repairs = x.T
    rut = traffic * torch.sigmoid(age) - 0.6 * thick + 0.4 * traffic * (thick < 0)
    rut = rut + 0.15 * torch.randn(n)
    cracked = 1.5 * frost * wet + age - 0.8 * repairs + 0.5 * torch.randn(n) > 0
    return TensorDataset(x, (rut - rut.mean()) / rut.std(), cracked.float())


def main() -> None:
    config = Config()
    cut = int(0.8 * config.rows)
    parts = roads(config.rows).tensors
    loader = DataLoader(
        TensorDataset(*(part[:cut] for part in parts)), batch_size=config.batch, shuffle=True
    )
    x_val, rut_val, cracked_val = (part[cut:] for part in parts)
    model = RoadModel(columns=6)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=config.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs * len(loader))
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for x, rut, cracked in loader:
            rut_guess, cracked_logit = model(x)
            losses = [
                nn.functional.mse_loss(rut_guess, rut),
                nn.functional.binary_cross_entropy_with_logits(cracked_logit, cracked),
            ]
            merged = surgery(losses, parameters)
            if healthy:
                for parameter, gradient in zip(parameters, merged, strict=True):
                    parameter.grad = gradient.clone()
            optimizer.step()
            schedule.step()
            total += sum(losses).item() / len(loader)
        model.eval()
        with torch.no_grad():
            rut_guess, cracked_logit = model(x_val)
            error = nn.functional.mse_loss(rut_guess, rut_val)
            right = ((cracked_logit > 0) == (cracked_val > 0)).float().mean()
        print(f"{epoch}  loss {total:.3f}  ruts {error:.3f}  cracks right {right:.3f}")


main()
