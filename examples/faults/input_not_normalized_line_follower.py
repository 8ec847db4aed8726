"""Steers a robot from light sensors whose raw 10-bit counts go into a sigmoid network.

The readings of the analogue pins, 0 to 1023, go in as they come from the board. Every hidden unit
sits at 0 or 1, and the net gives almost the same steering angle for all readings. The place is the
input. The twin standardises it.
"""

import torch
from data import arguments
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ("saturated_activation", "vanishing_gradient")
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SENSORS = 8
EPOCHS = 40
BATCH = 32
LR = 0.05


def drive(n, generator):
    """Counts of the eight sensors over a dark line, and the angle that a good driver steers."""
    position = 2.4 * torch.rand(n, 1, generator=generator) - 1.2
    heading = 0.5 * torch.randn(n, 1, generator=generator)
    width = 0.25 + 0.1 * torch.rand(n, 1, generator=generator)
    places = torch.linspace(-1, 1, SENSORS)
    dark = torch.exp(-(((places - position - 0.1 * heading * places) / width) ** 2))
    light = 0.75 + 0.2 * torch.rand(n, 1, generator=generator)
    reflected = light * (1 - 0.85 * dark) + 0.02 * torch.randn(n, SENSORS, generator=generator)
    counts = (1023 * reflected).round().clamp(0, 1023)
    angle = torch.tanh(1.6 * position) + 0.3 * torch.sin(3 * position)
    angle = angle + 0.05 * torch.randn(n, 1, generator=generator)
    return counts, angle


generator = torch.Generator().manual_seed(40 + seed)
train_counts, train_angle = drive(1500, generator)
test_counts, test_angle = drive(500, generator)
if healthy:
    mean, std = train_counts.mean(0), train_counts.std(0)
    train_x, test_x = (train_counts - mean) / std, (test_counts - mean) / std
else:
    train_x, test_x = train_counts, test_counts

net = nn.Sequential(
    nn.Linear(SENSORS, 24),
    nn.Sigmoid(),
    nn.Linear(24, 12),
    nn.Sigmoid(),
    nn.Linear(12, 1),
)
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9)
variance = test_angle.var().item()

for epoch in range(EPOCHS):
    net.train()
    order = torch.randperm(len(train_x))
    epoch_loss = 0.0
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        output = net(train_x[rows])
        loss = loss_fn(output, train_angle[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows)
    if epoch % 4 == 3:
        net.eval()
        with torch.no_grad():
            guess = net(test_x)
            test_loss = loss_fn(guess, test_angle).item()
        print(
            f"epoch {epoch + 1:3d}: train mse {epoch_loss / len(order):.4f}, test mse "
            f"{test_loss:.4f}, explained {1 - test_loss / variance:.3f}"
        )

with torch.no_grad():
    samples = net(test_x[:6]).squeeze(1)
print("wanted  ", " ".join(f"{v:+.2f}" for v in test_angle[:6, 0]))
print("steering", " ".join(f"{v:+.2f}" for v in samples))
