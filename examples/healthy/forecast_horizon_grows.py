"""A greenhouse model is unrolled over 1, 4, 8 and then 16 steps; its loss rises in stairs.

Longer runs add up their errors, so the mean loss over a run is larger for the same model when the
horizon grows. The error of held-out runs of 16 steps, which is what counts, falls from stage to
stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

ODD = (
    "the training loss goes up at the beginning of each stage: the horizon of the forecast "
    "grows there, and the held-out error over 16 steps falls"
)
_, seed = arguments(__doc__)


@dataclass(frozen=True)
class Stage:
    horizon: int
    steps: int


STAGES = (Stage(1, 200), Stage(4, 150), Stage(8, 120), Stage(16, 120))


class Greenhouse(nn.Module):
    """The change of air and soil temperature and of humidity in one step, given heat and vent."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 3)
        )
        nn.init.normal_(self.change[-1].weight, std=0.02)

    def forward(self, state: Tensor, inputs: Tensor) -> Tensor:
        return state + 0.3 * self.change(torch.cat([state, inputs], -1))

    def unroll(self, state: Tensor, inputs: Tensor) -> Tensor:
        states = []
        for now in inputs.unbind(1):
            state = self(state, now)
            states.append(state)
        return torch.stack(states, 1)


def runs(n: int, length: int = 16) -> tuple[Tensor, Tensor]:
    """Measured states (n, length + 1, 3) and what was done to the house (n, length, 3)."""
    state = torch.randn(n, 3)
    knots = torch.randn(n, 3, 6)
    inputs = nn.functional.interpolate(knots, size=length, mode="linear").transpose(1, 2)
    states = [state]
    for t in range(length):
        air, soil, damp = state.T
        heat, vent, sun = inputs[:, t].T
        opened = torch.sigmoid(2 * vent)
        air = air + 0.3 * (0.8 * heat + 0.6 * sun - opened * air + 0.4 * (soil - air))
        soil = soil + 0.3 * (0.3 * (air - soil) + 0.2 * torch.tanh(sun))
        damp = damp + 0.3 * (0.5 * torch.tanh(air) - opened * damp - 0.3 * damp * sun.tanh())
        state = torch.stack([air, soil, damp], 1) + 0.04 * torch.randn(n, 3)
        states.append(state)
    measured = torch.stack(states, 1)
    return measured + 0.01 * torch.randn_like(measured), inputs.contiguous()


def main() -> None:
    (states, inputs), (states_val, inputs_val) = runs(1500), runs(300)
    model = Greenhouse()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, sum(stage.steps for stage in STAGES), eta_min=2e-4
    )
    for stage in STAGES:
        total = 0.0
        for step in range(1, stage.steps + 1):
            model.train()
            rows = torch.randint(0, len(states), (64,))
            start = int(torch.randint(0, 17 - stage.horizon, ()))
            span = slice(start, start + stage.horizon)
            forecast = model.unroll(states[rows, start], inputs[rows, span])
            truth = states[rows, start + 1 : start + 1 + stage.horizon]
            loss = nn.functional.mse_loss(forecast, truth)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() / 50 if step > stage.steps - 50 else 0.0
        model.eval()
        with torch.no_grad():
            forecast = model.unroll(states_val[:, 0], inputs_val)
            error = nn.functional.mse_loss(forecast, states_val[:, 1:])
        print(f"horizon {stage.horizon:2d}  loss {total:.4f}  held-out error of 16 {error:.4f}")


main()
