"""Protein families from residue counts in float16; a fixed loss scale makes all gradients infinite.

The loop has its own loss scaling, as before GradScaler was there: multiply the loss, divide the
gradients, leave out the step if one is not finite. The scale of 2**24 was found for another loss,
summed up in float32. Here the first product goes beyond 65504, and every step is left out.
The place is the loss scale in the loop. The twin has 2**10.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "loss*", "optimizer", "head", "encoder")
SILENT = False
EXACT = False
EARLY = True

FAMILIES = 6


def counts(n, seed):
    """Log counts of 40 residue pairs; each family has its own profile."""
    g = torch.Generator().manual_seed(seed)
    profile = torch.randn(FAMILIES, 40, generator=torch.Generator().manual_seed(5))
    y = torch.randint(0, FAMILIES, (n,), generator=g)
    return 0.6 * profile[y] + torch.randn(n, 40, generator=g), y


class LossScaler:
    def __init__(self, scale):
        self.scale = scale
        self.skipped = 0

    def backward(self, loss):
        (loss * self.scale).backward()

    def step(self, optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        for grad in grads:
            grad.div_(self.scale)
        if all(torch.isfinite(grad).all() for grad in grads):
            optimizer.step()
        else:
            self.skipped += 1


def build_model():
    encoder = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
    return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(64, FAMILIES)})


def forward(model, x):
    with torch.autocast("cpu", dtype=torch.float16):
        return model["head"](model["encoder"](x))


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = forward(model, x).float()
    model.train()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    healthy, seed = arguments(__doc__)
    x, y = counts(2400, 1300 + seed)
    x_val, y_val = counts(600, 2300 + seed)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scaler = LossScaler(2.0**10 if healthy else 2.0**24)
    for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=300, seed=seed), 1):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(model, xb), yb)
        scaler.backward(loss)
        scaler.step(optimizer)
        if step % 50 == 0:
            val, acc = validate(model, x_val, y_val)
            print(f"{step}: loss {loss.item():.3f} val {val:.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
