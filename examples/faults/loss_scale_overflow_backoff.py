"""An auto-encoder of waves trains in float16 with a loss scaler of the author's own: scale the
loss, look at the gradients, leave the step out when one is not finite, double the scale after a
while.

It never halves the scale. The first one, taken from a larger model, is already too much for this
sum over a whole batch: every step is left out, and the loop goes on to its end. The place is the
optimizer.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("optimizer", "loop", "loss")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Scaler:
    def __init__(self, scale=2.0**20, patience=200):
        self.scale, self.patience, self.good = scale, patience, 0

    def step(self, loss, optimizer):
        optimizer.zero_grad()
        (loss * self.scale).backward()
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        if not all(g.isfinite().all() for g in grads):
            self.good = 0
            if healthy:
                self.scale /= 2
            return False
        for g in grads:
            g.div_(self.scale)
        optimizer.step()
        self.good += 1
        if self.good % self.patience == 0:
            self.scale *= 2
        return True


class WaveCoder(nn.Module):
    def __init__(self, length=40, code=6):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(length, 96), nn.GELU(), nn.Linear(96, code))
        self.decode = nn.Sequential(nn.Linear(code, 96), nn.GELU(), nn.Linear(96, length))

    def forward(self, x):
        return self.decode(self.encode(x))


x, _ = waves(seed, n=1600)
x = x.squeeze(-1)
loader = DataLoader(TensorDataset(x[:1200]), batch_size=64, shuffle=True, drop_last=True)
x_val = x[1200:]
model, scaler = WaveCoder(), Scaler()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    total = 0.0
    for (batch,) in loader:
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(batch)
        loss = (out.float() - batch).pow(2).sum() / batch.shape[1]
        scaler.step(loss, optimizer)
        total += loss.item() / len(batch) / len(loader)
    model.eval()
    with torch.no_grad():
        val = (model(x_val) - x_val).pow(2).mean()
    print(f"epoch {epoch}: train {total:.4f} val {val.item():.4f}")
