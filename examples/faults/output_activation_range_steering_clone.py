"""Copies an expert's steering from range readings; the actor ends in a tanh although the wheel
turns to 3 radians.

The person took the actor of a control benchmark, where all actions lie between -1 and 1, and left
out the factor max_action. Every sharp turn of the expert is out of reach of the output, and the
units of the last layer are driven to their end. The place is the output of the model, and so the
loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("saturated_activation", "target_not_normalized")
PLACE = ("loss", "model", "actor*", "head*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BEAMS = 24
MAX_STEER = 3.0


def drives(count):
    """Distances to the walls of a winding road, speed, and what the expert does with the wheel."""
    offset = 0.5 * torch.randn(count, 1).clamp(-2, 2)
    heading = 0.35 * torch.randn(count, 1)
    curve = 0.6 * torch.randn(count, 1)
    speed = 0.3 + torch.rand(count, 1)
    beam = torch.linspace(-1.2, 1.2, BEAMS)
    direction = beam + heading
    side = torch.where(direction > 0, 1.8 - offset, 1.8 + offset)
    distance = side / (direction.sin().abs() + 0.08)
    distance = distance * (1 + 0.4 * torch.tanh(curve * direction.sign()))
    reading = torch.log(distance.clamp(0.2, 12)) + 0.03 * torch.randn(count, BEAMS)
    steer = -1.1 * offset - 2.0 * heading + 1.5 * curve * speed
    steer = MAX_STEER * torch.tanh(steer / MAX_STEER) + 0.03 * torch.randn(count, 1)
    return reading, speed, steer.squeeze(1)


class Actor(nn.Module):
    def __init__(self, max_action):
        super().__init__()
        self.max_action = max_action
        self.beams = nn.Sequential(
            nn.Conv1d(1, 12, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(12, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear(16 * BEAMS // 2 + 1, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh()
        )

    def forward(self, reading, speed):
        features = torch.cat([self.beams(reading.unsqueeze(1)), speed], 1)
        action = self.head(features).squeeze(1)
        if healthy:
            action = self.max_action * action
        return action


def main():
    reading, speed, steer = drives(3600)
    reading = (reading - reading[:3000].mean()) / reading[:3000].std()
    speed = (speed - speed[:3000].mean()) / speed[:3000].std()
    model = Actor(MAX_STEER)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
    steps = 0
    for epoch in range(1, 13):
        if epoch == 9:
            for group in optimizer.param_groups:
                group["lr"] *= 0.2
        model.train()
        running = 0.0
        for rows in torch.randperm(3000).split(60):
            loss = nn.functional.mse_loss(model(reading[rows], speed[rows]), steer[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows) / 3000
            steps += 1
        model.eval()
        with torch.no_grad():
            error = model(reading[3000:], speed[3000:]) - steer[3000:]
        print(
            f"{steps:4d} steps: imitation loss {running:.4f},"
            f" held-out RMSE {error.pow(2).mean().sqrt():.3f} rad, worst {error.abs().max():.2f}"
        )


if __name__ == "__main__":
    main()
