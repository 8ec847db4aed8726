"""Double Q-learning with a replay buffer and a target network that is copied now and then teaches a
cart to stop at the origin.

What looks odd: the loss does not fall while the policy gets better, for the values it has to
foresee grow; it jumps whenever the target network is copied; that network is never in the
optimizer; and the buffer gives the same moments many times. All of it is as it should be.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a loss that does not fall, as values grow; a target network that nothing trains"

_, seed = arguments(__doc__)


class Carts:
    """Position and speed; push left, not at all, or right; up to 1 per step near the origin."""

    def __init__(self, n):
        self.s = (torch.rand(n, 2) - 0.5) * torch.tensor([4.0, 1.0])

    def step(self, action):
        speed = (0.97 * self.s[:, 1] + 0.15 * (action - 1.0)).clamp(-1, 1)
        position = (self.s[:, 0] + 0.2 * speed).clamp(-3, 3)
        self.s = torch.stack([position, speed], 1)
        return torch.exp(-4 * position.square()) * (1 - 0.3 * speed.abs())


def network():
    return nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
    )


@torch.no_grad()
def score(q, n=300, steps=40):
    carts, total = Carts(n), 0.0
    for _ in range(steps):
        total += carts.step(q(carts.s).argmax(1)).mean().item()
    return total / steps


online, target = network(), network()
target.load_state_dict(online.state_dict())
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
memory, recent = [], []
carts = Carts(32)
for step in range(1, 1501):
    if step % 40 == 0:
        carts = Carts(32)
    explore = max(0.1, 1 - step / 700)
    before = carts.s
    with torch.no_grad():
        best = online(before).argmax(1)
    action = torch.where(torch.rand(32) < explore, torch.randint(0, 3, (32,)), best)
    reward = carts.step(action)
    memory.append((before, action, reward, carts.s))
    memory = memory[-600:]
    picks = [memory[i] for i in torch.randint(len(memory), (4,)).tolist()]
    s, a, r, after = (torch.cat(part) for part in zip(*picks, strict=False))
    with torch.no_grad():
        chosen = online(after).argmax(1, keepdim=True)
        goal = r + 0.95 * target(after).gather(1, chosen).squeeze(1)
    loss = F.smooth_l1_loss(online(s).gather(1, a[:, None]).squeeze(1), goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    recent.append(loss.item())
    if step % 100 == 0:
        target.load_state_dict(online.state_dict())
    if step % 150 == 0:
        print(
            f"step {step} loss {sum(recent[-150:]) / 150:.4f} reward per step {score(online):.3f}"
        )
