"""Reads digits from price tags in half precision; the fixed loss scale is so large it overflows.

The loop scales the loss by a fixed factor, as mixed precision was done by hand in the past, and
leaves out steps whose gradients are not finite. The factor of four million, chosen for another net
with a far smaller loss, sends most gradients to infinity. The place is the loop.
The twin scales by 1,024.
"""

import math

import torch
from data import arguments, digits
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "loss*", "optimizer")
SILENT = False
EXACT = False
EARLY = True


class HalfTrainer:
    def __init__(self, model, loss_scale, lr=1e-3):
        self.model, self.scale = model, float(loss_scale)
        self.params = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.params, lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            out = self.model(x)
        loss = self.criterion(out.float(), y)
        (loss * self.scale).backward()
        for p in self.params:
            p.grad.div_(self.scale)
        norm = nn.utils.clip_grad_norm_(self.params, 5.0)
        if math.isfinite(norm):
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, y):
        with torch.autocast("cpu", dtype=torch.float16):
            return (self.model(x).argmax(1) == y).float().mean().item()


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = digits(seed)
    model = nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10)
    )
    trainer = HalfTrainer(model, loss_scale=2**10 if healthy else 2**22)
    for epoch in range(14):
        rows = torch.randperm(len(x)).split(64)
        loss = sum(trainer.step(x[r], y[r]) for r in rows) / len(rows)
        if epoch % 2 == 1:
            right = trainer.accuracy(x_val, y_val)
            print(f"epoch {epoch + 1} loss {loss:.3f} accuracy {right:.3f}")


main()
