"""Self-supervised training in the style of VICReg takes its spread term over the features, not over
the batch.

The hinge on the standard deviation is content as soon as one vector's entries differ, so all
samples may get the same vector, and do: a linear read-out of the machine's type from the embedding
finds next to nothing. The place is the loss, and what collapses is the encoder's output.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("rank_collapse",)
PLACE = ("loss*", "encoder*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, _ = arguments(__doc__)
AXIS = 0 if healthy else 1
TYPES, T, DIM = 6, 64, 16
PITCH = torch.tensor([0.25, 0.42, 0.6, 0.85, 1.15, 1.5])


def window(kind):
    """A microphone's window of a machine: its tone with any phase and loudness, and noise."""
    n = len(kind)
    t = torch.arange(T) * PITCH[kind][:, None] * (1 + 0.03 * torch.randn(n, 1))
    tone = torch.sin(t + 6.283 * torch.rand(n, 1)) * (1 + 0.2 * torch.randn(n, 1))
    return (tone + 0.4 * torch.randn(n, T))[:, None] / 0.82


encoder = nn.Sequential(
    nn.Conv1d(1, 24, 9, stride=2),
    nn.ReLU(),
    nn.Conv1d(24, 32, 5, stride=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(32, 64),
    nn.ReLU(),
    nn.Linear(64, DIM),
)


def vicreg(a, b):
    def spread(z):
        return F.relu(1 - (z.var(dim=AXIS) + 1e-4).sqrt()).mean()

    def covariance(z):
        z = z - z.mean(0)
        c = z.T @ z / (len(z) - 1)
        return (c - torch.diag(c.diagonal())).pow(2).sum() / DIM

    return 10 * F.mse_loss(a, b) + 10 * (spread(a) + spread(b)) + covariance(a) + covariance(b)


@torch.no_grad()
def read_out():
    """Accuracy of a ridge read-out (penalty 1) on fresh windows."""
    kind, kind_val = torch.randint(TYPES, (600,)), torch.randint(TYPES, (600,))
    z, z_val = encoder(window(kind)), encoder(window(kind_val))
    centre = z.mean(0)
    z, z_val = z - centre, z_val - centre
    target = F.one_hot(kind, TYPES).float()
    w = torch.linalg.solve(z.T @ z + torch.eye(DIM), z.T @ (target - target.mean(0)))
    guess = (z_val @ w + target.mean(0)).argmax(1)
    return (guess == kind_val).float().mean().item(), z.std(0).mean().item()


opt = torch.optim.Adam(encoder.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 400, eta_min=1e-4)
for step in range(400):
    kind = torch.randint(TYPES, (128,))
    loss = vicreg(encoder(window(kind)), encoder(window(kind)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 80 == 79:
        accuracy, std = read_out()
        print(f"{step + 1} loss {loss.item():.4f}  std {std:.4f}  read-out {accuracy:.3f}")
