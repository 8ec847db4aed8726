"""A small student learns a teacher's soft answers by `KLDivLoss`.

Fault: `KLDivLoss` wants log-probabilities for its first argument; the student's bare logits go in.
The place is the loss. The loss falls without end, below zero.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "")
SILENT = True
EXACT = True
EARLY = True


class Distiller:
    def __init__(self, teacher, student, temperature=3.0):
        self.teacher, self.student, self.t = teacher.eval(), student, temperature
        self.criterion = nn.KLDivLoss(reduction="batchmean")
        self.optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)

    def step(self, x):
        with torch.no_grad():
            wanted = F.softmax(self.teacher(x) / self.t, dim=1)
        given = self.student(x) / self.t
        if healthy:
            given = F.log_softmax(given, dim=1)
        loss = self.criterion(given, wanted) * self.t**2
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def pretrained(x, y):
    net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for xb, yb in batches(x, y, size=64, steps=150, seed=1):
        optimizer.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        optimizer.step()
    return net.requires_grad_(False)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
student = nn.Sequential(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 10))
distiller = Distiller(pretrained(x, y), student)
for step, (xb,) in enumerate(batches(x, size=64, steps=300, seed=seed), 1):
    last = distiller.step(xb)
    if step % 60 == 0:
        with torch.no_grad():
            out = student(x_val)
            accuracy = (out.argmax(1) == y_val).float().mean().item()
            nll = F.cross_entropy(out, y_val).item()
        print(f"step {step}: loss {last:.4f}, accuracy {accuracy:.3f}, nll {nll:.3f}")
print(f"loss {last:.4f} | validation accuracy {accuracy:.3f} nll {nll:.3f}")
