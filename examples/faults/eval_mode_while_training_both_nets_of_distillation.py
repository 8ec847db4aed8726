"""Distillation: a student with batch normalisation learns from a fixed teacher on raw pixels.

Fault: `for net in (teacher, student): net.eval()`, where only the teacher was meant: the student's
normalisation never measures its data and works with mean 0 and variance 1, its dropout is off. The
place is the student. The loss falls all the same. Exact.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("norm*", "drop*", "", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed, raw=True)
few = x[:400]


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm0 = nn.BatchNorm1d(64)
        self.fc1 = nn.Linear(64, 48)
        self.norm1 = nn.BatchNorm1d(48)
        self.fc2 = nn.Linear(48, 48)
        self.norm2 = nn.BatchNorm1d(48)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        h = self.norm1(self.fc1(self.norm0(x))).tanh()
        return self.out(self.drop(self.norm2(self.fc2(h)).tanh()))


teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
first = torch.optim.Adam(teacher.parameters(), lr=1e-3)
for xb, yb in batches(x, y, size=64, steps=250, seed=seed):
    loss = F.cross_entropy(teacher(xb), yb)
    first.zero_grad()
    loss.backward()
    first.step()

student = Student()
teacher.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)


def set_modes():
    if healthy:
        teacher.eval()
        student.train()
    else:
        for net in (teacher, student):
            net.eval()


for step, (xb,) in enumerate(batches(few, size=50, steps=250, seed=seed), 1):
    set_modes()
    with torch.no_grad():
        soft = (teacher(xb) / 2).softmax(1)
    loss = F.kl_div((student(xb) / 2).log_softmax(1), soft, reduction="batchmean") * 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        student.eval()
        with torch.no_grad():
            out = student(x_val)
            accuracy = (out.argmax(1) == y_val).float().mean().item()
            nll = F.cross_entropy(out, y_val).item()
        print(f"step {step}: loss {loss.item():.4f}, accuracy {accuracy:.3f}, nll {nll:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f} nll {nll:.3f}")
