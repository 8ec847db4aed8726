"""A small student network learns digits from a big teacher that is frozen and always in eval mode.

It looks odd because most parameters of the wrapper never change and get no gradient, its teacher
is in eval mode during training, and the optimizer steps only after every fourth backward. The
teacher was trained first in this very program, the student's losses are divided by four, and the
student does about as well as the teacher.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

ODD = (
    "A small student network learns digits from a big teacher that is frozen and always in "
    "eval mode"
)
_, seed = arguments(__doc__)

PARTS, HEAT = 4, 3.0


def build(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * width, 10),
    )


class Distiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            wise = self.teacher(x)
        return self.student(x), wise


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
teacher = build(24)
optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-3, weight_decay=1e-2)
for a, b in batches(x, y, size=64, steps=160, seed=seed):
    teacher.train()
    loss = F.cross_entropy(teacher(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher: val accuracy {accuracy(teacher, x_val, y_val):.3f}")

pair = Distiller(teacher, build(6))
optimizer = torch.optim.SGD(pair.student.parameters(), lr=0.05, momentum=0.9)
optimizer.zero_grad()
for i, (a, b) in enumerate(batches(x, y, size=16, steps=1000, seed=seed + 1), 1):
    pair.train()
    out, wise = pair(a)
    soft = F.kl_div(
        F.log_softmax(out / HEAT, 1),
        F.log_softmax(wise / HEAT, 1),
        reduction="batchmean",
        log_target=True,
    )
    loss = 0.3 * F.cross_entropy(out, b) + 0.7 * HEAT**2 * soft
    (loss / PARTS).backward()
    if i % PARTS == 0:
        optimizer.step()
        optimizer.zero_grad()
    if i % 100 == 0:
        right = accuracy(pair.student, x_val, y_val)
        print(f"batch {i} loss {loss.item():.4f} student's val accuracy {right:.3f}")
