"""A regression whose target is nine parts noise: after a few dozen steps the loss is as low as
it can be and stays flat at the noise for the rest; R2 is 0.1, and no model does better.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

ODD = "the loss hardly falls and is flat for nine tenths of the training: it is at the noise floor"

healthy, seed = arguments(__doc__)
w = torch.randn(10)
w = w / w.norm()


def draw(n):
    x = torch.randn(n, 10)
    return x, (x @ w) + 3.0 * torch.randn(n), x @ w


x, y, _ = draw(20_000)
x_val, y_val, clean = draw(4000)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=500)
for step, (xb, yb) in enumerate(batches(x, y, size=256, steps=500, seed=seed), 1):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(xb).squeeze(1)
    loss = F.mse_loss(out.float(), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            out = net(x_val).squeeze(1)
        val, against = F.mse_loss(out, y_val).item(), 1 - F.mse_loss(out, clean).item()
        print(f"step {step}: loss {loss.item():.3f}, validation {val:.3f}, clean R2 {against:.3f}")
print(f"loss {loss.item():.4f} | validation loss {val:.3f} (noise 9) R2 of the clean {against:.3f}")
