"""A focal loss written by hand calls `F.nll_loss` on the net's logits.

It takes them for log-probabilities: pt is the exponential of a logit and grows above 1. The twin
calls `F.cross_entropy` there. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "", "output")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=(0.6, 0.4)):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("alpha", torch.tensor(alpha))

    def forward(self, outputs, labels):
        if healthy:
            ce = F.cross_entropy(outputs, labels, reduction="none")
        else:
            ce = F.nll_loss(outputs, labels, reduction="none")
        pt = torch.exp(-ce)
        return (self.alpha[labels] * (1 - pt) ** self.gamma * ce).mean()


class Screening(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 24)
        self.drop = nn.Dropout(0.1)
        self.output = nn.Linear(24, 2)

    def forward(self, x):
        return self.output(self.drop(F.leaky_relu(self.hidden(x))))


x, y, x_val, y_val = cancer(seed)
model, focal = Screening(), FocalLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad(set_to_none=True)
        loss = focal(model(x[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        missed = ((out.argmax(1) == 1) & (y_val == 0)).sum().item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    val = focal(out, y_val).item()
    print(f"{epoch:2d} train {loss.item():.3f} val {val:.3f} acc {accuracy:.3f} missed {missed}")
