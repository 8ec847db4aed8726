"""An MLP that removes the noise of images, in float16 autocast without a GradScaler.

The targets are in a physical unit, a few hundredths, and the mean squared error is a mean over the
16,384 pixels of a batch: the gradient of a pixel is below what float16 can hold, and most become
exactly 0 on the way back. The place is the loss, which is not scaled. The twin uses a GradScaler.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
UNIT = 0.03
x, x_val = x / 16, x_val / 16


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 64)

    def forward(self, x):
        h = torch.tanh(self.fc1(x))
        return UNIT * self.fc3(torch.tanh(self.fc2(h)))


def noisy(x, generator=None):
    return 2 * (x + 0.3 * torch.randn(x.shape, generator=generator)) - 1


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-10)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)
val_noisy = noisy(x_val, torch.Generator().manual_seed(seed))

for step, (xb,) in enumerate(batches(x, size=256, steps=500, seed=seed), 1):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(noisy(xb))
    loss = F.mse_loss(out.float(), UNIT * xb)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 50 == 0:
        zeros = torch.cat([p.grad.flatten() for p in model.parameters()]).eq(0).float().mean()
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(val_noisy), UNIT * x_val) / (UNIT**2 * x_val.var(0).mean())
        model.train()
        print(
            f"step {step}: train {loss.item():.2e}  val error {val.item():.3f} of the variance"
            f"  zero gradients {zeros.item():.2f}"
        )
