"""A correction on top of a physical model of a quadrotor's thrust: the last layer begins at zero.

The network adds to a momentum-theory estimate. Its last layer and the second half of each residual
block begin at exactly zero, so the untrained model is the physical one; the first step can only
move the last layer, and the rate begins near zero too. That is the usual start for residual
corrections, and everything learns afterwards.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "head and residual branches begin at zero: outputs are constant, most first gradients are zero"
)

_, seed = arguments(__doc__)
CONFIG = {
    "width": 48,
    "blocks": 2,
    "peak": 3e-3,
    "warm": 30,
    "steps": 500,
    "batch": 80,
    "average": 0.98,
}


def flights(count, g):
    """Rotor speed, climb, side wind, height above ground; thrust by theory and as measured."""
    rotor, climb = 0.5 + torch.rand(count, generator=g), 2 * torch.rand(count, generator=g) - 1
    side, height = torch.rand(count, generator=g), 0.2 + 2 * torch.rand(count, generator=g)
    theory = rotor.pow(2) * (1 - 0.3 * climb / rotor)
    ground = 1 / (1 - 0.12 / (height + 0.3).pow(2).clamp(min=0.4))
    ring = 0.4 * torch.exp(-(((climb + 0.6 * rotor) / 0.15) ** 2)) * (1 - side)
    measured = theory * ground * (1 + 0.25 * side.pow(2)) * (1 - ring)
    x = torch.stack([4 * (rotor - 1), 2 * climb, 4 * (side - 0.5), 2 * (height - 1.2)], 1)
    return x, theory, measured + 0.02 * torch.randn(count, generator=g)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.Linear(width, width),
        )
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, h):
        return h + self.down(nn.functional.silu(self.up(self.norm(h))))


class Correction(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.into = nn.Linear(4, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x, theory):
        h = self.into(x)
        for block in self.blocks:
            h = block(h)
        return theory + self.head(nn.functional.silu(h))[:, 0]


g = torch.Generator().manual_seed(seed)
x, theory, thrust = flights(4000, g)
x_val, theory_val, thrust_val = flights(800, g)
model = Correction(CONFIG["width"], CONFIG["blocks"])
averaged = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(CONFIG["average"])
)
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["peak"], weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.02, total_iters=CONFIG["warm"]),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["steps"] - CONFIG["warm"]),
    ],
    milestones=[CONFIG["warm"]],
)
print(f"theory alone: validation error {(theory_val - thrust_val).pow(2).mean().sqrt():.4f} N")
for step in range(1, CONFIG["steps"] + 1):
    model.train()
    rows = torch.randint(0, len(x), (CONFIG["batch"],), generator=g)
    loss = nn.functional.mse_loss(model(x[rows], theory[rows]), thrust[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    averaged.update_parameters(model)
    if step % 50 == 0:
        averaged.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(averaged(x_val, theory_val), thrust_val)
        print(f"step {step} loss {loss:.5f} val loss {val:.5f} validation error {val.sqrt():.4f} N")
