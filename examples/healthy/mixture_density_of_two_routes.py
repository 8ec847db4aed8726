"""A mixture density net for the two angles of a robot arm, whose negative log-likelihood falls
below zero and goes on falling.

People ask how a loss can be negative, and whether the sign is wrong. It is the logarithm of a
density: where the answers are known to a few hundredths, densities are far above one. Held-out
likelihood follows, and the two solutions are found.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss crosses zero and becomes negative, as densities above one have negative "
    "logarithms; held-out loss does the same"
)
_, seed = arguments(__doc__)

COMPONENTS = 3


def arm_positions(count, generator):
    """Where the hand is, and the two angles, of which elbow up and elbow down are both possible."""
    shoulder = math.pi * (torch.rand(count, generator=generator) - 0.5)
    elbow = 0.6 + 1.6 * torch.rand(count, generator=generator)
    elbow = torch.where(torch.rand(count, generator=generator) < 0.5, elbow, -elbow)
    hand = torch.stack(
        [
            shoulder.cos() + 0.8 * (shoulder + elbow).cos(),
            shoulder.sin() + 0.8 * (shoulder + elbow).sin(),
        ],
        1,
    )
    angles = torch.stack([shoulder, elbow], 1) + 0.02 * torch.randn(count, 2, generator=generator)
    return hand, angles


class MixtureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh())
        self.parts = nn.Linear(96, 5 * COMPONENTS)

    def forward(self, hand):
        weight, mean, log_std = self.parts(self.trunk(hand)).split(
            [COMPONENTS, 2 * COMPONENTS, 2 * COMPONENTS], 1
        )
        shape = len(hand), COMPONENTS, 2
        return weight.log_softmax(1), mean.view(shape), log_std.view(shape).clamp(min=-5)


def negative_log_likelihood(mixture, angles):
    weight, mean, log_std = mixture
    scaled = (angles[:, None] - mean) / log_std.exp()
    parts = -0.5 * scaled.square() - log_std - 0.5 * math.log(2 * math.pi)
    return -(weight + parts.sum(2)).logsumexp(1).mean()


def main():
    generator = torch.Generator().manual_seed(44 + seed)
    hand, angles = arm_positions(3000, generator)
    centre, spread = hand[:2400].mean(0), hand[:2400].std(0)
    hand = (hand - centre) / spread
    net = MixtureNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    for epoch in range(1, 31):
        net.train()
        losses = []
        for rows in torch.randperm(2400).split(60):
            loss = negative_log_likelihood(net(hand[rows]), angles[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        net.eval()
        with torch.no_grad():
            mixture = net(hand[2400:])
            val = negative_log_likelihood(mixture, angles[2400:]).item()
            nearest = (mixture[1] - angles[2400:, None]).norm(dim=2).min(1).values.median().item()
        if epoch % 3 == 0 or epoch == 1:
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  val {val:.4f}"
                f"  nearest component off by {nearest:.4f} rad"
            )


main()
