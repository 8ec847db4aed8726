"""A U-Net picks seismic waves; its gradients are clipped while they still carry the loss scale.

The person trains in bfloat16 with a GradScaler, copied from half precision, and clips to 1.0
right after the backward pass. The gradients are 1,024 times too large there; once the scaler has
divided them again, next to nothing is left of each step. The place is the loop (order of unscale
and clip).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low", "gradient_underflow")
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 128


def seismograms(n: int, offset: int):
    """Three components with a P wave (mostly up and down) and a later S wave (mostly sideways)."""
    r = np.random.default_rng(410 + 10 * seed + offset)
    x = r.normal(0, 1, (n, 3, LENGTH))
    x = 0.12 * (x + np.roll(x, 1, 2) + np.roll(x, 2, 2))
    y = np.zeros((n, LENGTH), dtype=np.int64)
    t = np.arange(LENGTH)
    for i in range(n):
        p = int(r.integers(12, 60))
        s = p + int(r.integers(18, 45))
        for begin, share, rate, length in (
            (p, (0.3, 0.3, 1.0), 1.3, 14),
            (s, (1.0, 1.0, 0.3), 0.7, 20),
        ):
            age = np.clip(t - begin, 0, None)
            wave = (t >= begin) * np.exp(-age / length) * np.sin(rate * age + r.uniform(0, 0.6))
            x[i] += r.uniform(0.6, 1.6) * np.array(share)[:, None] * wave
        y[i, p:s] = 1
        y[i, s:] = 2
    x = (x - x.mean(2, keepdims=True)) / x.std((1, 2), keepdims=True)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def double_conv(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(inside, outside, 5, padding=2),
        nn.GroupNorm(4, outside),
        nn.ReLU(),
        nn.Conv1d(outside, outside, 5, padding=2),
        nn.ReLU(),
    )


class PickNet(nn.Module):
    def __init__(self, width: int = 12):
        super().__init__()
        self.down1 = double_conv(3, width)
        self.down2 = double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 4 * width)
        self.up2 = double_conv(6 * width, 2 * width)
        self.up1 = double_conv(3 * width, width)
        self.out = nn.Conv1d(width, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool1d(a, 4))
        c = self.bottom(F.max_pool1d(b, 4))
        b = self.up2(torch.cat([b, F.interpolate(c, scale_factor=4)], 1))
        return self.out(self.up1(torch.cat([a, F.interpolate(b, scale_factor=4)], 1)))


def dice_loss(scores, y):
    probs = scores.softmax(1)
    truth = F.one_hot(y, 3).permute(0, 2, 1)
    overlap = (probs * truth).sum((0, 2))
    return 1 - (2 * overlap / (probs.sum((0, 2)) + truth.sum((0, 2)))).mean()


def picks_off(scores, y):
    """Mean distance of the picked beginnings from the true ones, in samples."""
    answer = scores.argmax(1)
    off = []
    for wave in (1, 2):
        picked = torch.where(answer == wave, torch.arange(LENGTH), LENGTH).amin(1)
        true = torch.where(y == wave, torch.arange(LENGTH), LENGTH).amin(1)
        off.append((picked - true).abs().float().mean().item())
    return off


def main():
    x, y = seismograms(640, 0)
    x_val, y_val = seismograms(160, 1)
    model = PickNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    epochs, batch = 12, 32
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(x) // batch)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = model(x[rows])
            scores = scores.float()
            loss = F.cross_entropy(scores, y[rows]) + dice_loss(scores, y[rows])
            scaler.scale(loss).backward()
            if healthy:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
            val_loss = F.cross_entropy(scores, y_val) + dice_loss(scores, y_val)
            right = (scores.argmax(1) == y_val).float().mean()
            p_off, s_off = picks_off(scores, y_val)
        print(
            f"epoch {epoch:2d}  loss {total / len(x):.4f}  val {val_loss:.4f}  right {right:.3f}"
            f"  P off by {p_off:.1f}  S off by {s_off:.1f}"
        )


if __name__ == "__main__":
    main()
