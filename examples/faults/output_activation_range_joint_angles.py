"""A network that names the shoulder and elbow angles for a point of the plane ends in tanh; the
angles go from -3.1 to 3.1 rad.

Two thirds of the answers are out of its reach, the outputs sit at 1 and -1 and the loss levels off
high. The place is the last activation.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("target_not_normalized",)
PLACE = ("*limit*", "*tanh*", "*out*", "loss*", "last*", "")
SILENT = True
EXACT = True
EARLY = True


def reach(n):
    """Hand positions of an arm with links of 1 and 0.7, its elbow bent to the left, and the
    angles.
    """
    shoulder = (torch.rand(n) * 2 - 1) * 2.6
    elbow = 0.3 + 2.5 * torch.rand(n)
    hand_x = shoulder.cos() + 0.7 * (shoulder + elbow).cos()
    hand_y = shoulder.sin() + 0.7 * (shoulder + elbow).sin()
    heading = shoulder + elbow
    seen = torch.stack([hand_x, hand_y, heading.cos(), heading.sin()], 1)
    return seen + 0.01 * torch.randn(n, 4), torch.stack([shoulder, elbow], 1)


class Arm(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.a = nn.Linear(4, 96)
        self.b = nn.Linear(96, 96)
        self.out = nn.Linear(96, 2)
        self.limit = nn.Tanh()
        self.scale = scale

    def forward(self, seen):
        z = torch.relu(self.a(seen))
        z = torch.relu(self.b(z))
        return self.scale * self.limit(self.out(z))


def train(arm, seen, angles, steps):
    optimizer = torch.optim.Adam(arm.parameters(), lr=4e-3)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.02 ** (s / steps))
    for step in range(steps):
        rows = torch.randint(0, len(seen), (128,))
        loss = nn.functional.l1_loss(arm(seen[rows]), angles[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        if step % 60 == 59:
            print(f"step {step + 1}: loss {loss.item():.4f}")


healthy, _ = arguments(__doc__)
seen, angles = reach(5000)
arm = Arm(math.pi * 1.1 if healthy else 1.0)
train(arm, seen[:4000], angles[:4000], 420)
with torch.no_grad():
    miss = (arm(seen[4000:]) - angles[4000:]).abs().mean()
print(f"mean error on new points: {math.degrees(miss):.1f} degrees")
