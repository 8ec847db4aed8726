"""Sharpness-aware minimisation (SAM) of a small conv net: two backward passes per step, and
weights that are moved and put back.

It looks odd because backward() runs twice per update, the weights change between the two without
an optimizer's step, and the gradients are cleared twice; that is what SAM does (Foret et al.
2021). BatchNorm statistics are updated in the first pass only.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = (
    "Sharpness-aware minimisation (SAM) of a small conv net: two backward passes per step, "
    "and weights that are moved and put back"
)
_, seed = arguments(__doc__)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                e = group["rho"] / (norm + 1e-12) * p.grad
                self.state[p]["moved"] = e
                p.add_(e)
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["moved"])
        self.base.step()
        self.zero_grad()

    def step(self, closure=None):
        raise RuntimeError("call ascend() and descend()")


def freeze_statistics(model, frozen):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 0.0 if frozen else 0.1


net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 24, 3, padding=1, stride=2),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 16, 10),
)
x, y, x_val, y_val = images(seed)
optimizer = SAM(
    net.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9, weight_decay=5e-4
)
STEPS = 420
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base, STEPS)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=STEPS, seed=seed), 1):
    net.train()
    loss = F.cross_entropy(net(xb), yb, label_smoothing=0.05)
    loss.backward()
    optimizer.ascend()
    freeze_statistics(net, True)
    F.cross_entropy(net(xb), yb, label_smoothing=0.05).backward()
    freeze_statistics(net, False)
    optimizer.descend()
    scheduler.step()
    if step % 70 == 0:
        net.eval()
        with torch.no_grad():
            logits = net(x_val)
        print(
            f"step {step} loss {loss.item():.4f} val {F.cross_entropy(logits, y_val).item():.4f} accuracy {(logits.argmax(1) == y_val).float().mean():.4f}"  # noqa: E501
        )
