"""Behaviour cloning of a pendulum's controller: the actor ends in tanh, as in the DDPG code it was
taken from, but the `max_action *` before it is missing, and torques go from -2 to 2.

Every torque beyond 1 is out of the actor's reach: the error stays at a floor, the tanh is driven
into saturation, and the cloned controller pushes with half the force. The place is the loss.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("*l3*", "*actor*", "loss*", "")
SILENT = True
EXACT = True
EARLY = True

MAX_TORQUE = 2.0


def expert(state):
    """Smooth torque of the controller to imitate, within 1.7 either way."""
    cos, sin, speed = state.unbind(1)
    return (1.7 * torch.tanh(-2.2 * sin - 1.1 * speed + 0.5 * sin * cos)).unsqueeze(1)


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim, max_action):
        super().__init__()
        self.l1 = nn.Linear(state_dim, 48)
        self.l2 = nn.Linear(48, 48)
        self.l3 = nn.Linear(48, action_dim)
        self.max_action = max_action

    def forward(self, state):
        a = F.relu(self.l1(state))
        a = F.relu(self.l2(a))
        return self.max_action * torch.tanh(self.l3(a))


class ReplayBuffer:
    def __init__(self, size):
        angle = (torch.rand(size) * 2 - 1) * math.pi
        speed = torch.randn(size)
        self.state = torch.stack([angle.cos(), angle.sin(), speed], 1)
        self.action = expert(self.state) + 0.05 * torch.randn(size, 1)

    def sample(self, batch_size):
        ind = torch.randint(0, len(self.state), (batch_size,))
        return self.state[ind], self.action[ind]


healthy, seed = arguments(__doc__)
demonstrations, held_out = ReplayBuffer(5000), ReplayBuffer(1000)
actor = Actor(3, 1, max_action=MAX_TORQUE if healthy else 1.0)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
decay = torch.optim.lr_scheduler.LambdaLR(actor_optimizer, lambda t: 1 - t / 800)

for t in range(800):
    state, action = demonstrations.sample(100)
    actor_loss = F.mse_loss(actor(state), action)
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    decay.step()
    if (t + 1) % 100 == 0:
        actor.eval()
        with torch.no_grad():
            val_loss = F.mse_loss(actor(held_out.state), held_out.action)
        actor.train()
print(f"loss {actor_loss.item():.4f}, held-out loss {val_loss:.4f}")
