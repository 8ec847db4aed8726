"""A 1-d CNN estimates the pitch of tones, and gradients are cleared only where a step is skipped.

A guard skips a step whose gradient is not finite and clears it; the clearing of all other steps was
lost when the guard came in. The gradients add up over the whole training, clipping hides how large
they are, and the direction is that of long ago. The place is the loop: zero_grad.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 96


def tones(n, g):
    """Decaying tones with overtones; the pitch is the log of the frequency, in octaves."""
    t = torch.arange(LENGTH, dtype=torch.float32)
    octave = 2 * torch.rand(n, 1, generator=g)
    turn = 0.12 * 2**octave * t
    strength = torch.rand(n, 3, generator=g) * torch.tensor([1.0, 0.5, 0.3]) + 0.3
    phase = 6.283 * torch.rand(n, 3, generator=g)
    tone = sum(strength[:, [k]] * torch.sin((k + 1) * turn + phase[:, [k]]) for k in range(3))
    tone = tone * torch.exp(-t / 80) + 0.2 * torch.randn(n, LENGTH, generator=g)
    return tone.unsqueeze(1), octave.squeeze(1) - 1


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv1d(1, 16, 15, stride=2, padding=7),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2, padding=4),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        x = self.filters(x)
        return self.head(torch.cat([x.mean(2), x.amax(2)], 1)).squeeze(1)


class Training:
    def __init__(self, model, lr=0.02, max_norm=5.0):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.skipped = 0

    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            self.skipped += 1
            return loss.item()
        self.optimizer.step()
        if healthy:
            self.optimizer.zero_grad()
        return loss.item()

    def error(self, x, y):
        self.model.eval()
        with torch.no_grad():
            error = F.mse_loss(self.model(x), y).item()
        self.model.train()
        return error


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = tones(1600, g), tones(400, g)
scale = x.std()
x, x_val = x / scale, x_val / scale
training = Training(Listener())
for epoch in range(10):
    losses = [
        training.step(x[rows], y[rows]) for rows in torch.randperm(len(x), generator=g).split(40)
    ]
    print(
        f"epoch {epoch + 1:2d}  train {sum(losses) / len(losses):.4f}  "
        f"val {training.error(x_val, y_val):.4f}  skipped {training.skipped}"
    )
