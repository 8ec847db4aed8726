"""Mean teacher: 60 labelled and 1,287 unlabelled digits; a teacher that is never trained by
gradients.

The teacher is an exponential average of the student: it has no gradient, is in no optimizer and
changes all the same. The consistency loss begins at zero, grows with its ramp, and makes the sum
rise in the first epochs. Its targets are detached. The teacher is what is validated.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "a second network that is changed without gradients; unlabelled inputs; a loss term that ramps "
    "up"
)

_, seed = arguments(__doc__)


def network():
    return nn.Sequential(
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def noisy(x):
    return x + 0.35 * torch.randn_like(x)


@torch.no_grad()
def update_teacher(teacher, student, step):
    alpha = min(1 - 1 / (step + 1), 0.98)
    for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
        t.lerp_(s, 1 - alpha)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


x, y, x_val, y_val = digits(seed)
labelled = torch.cat([torch.where(y == c)[0][:6] for c in range(10)])
student = network()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3, weight_decay=0.02)

STEPS = 900
for step in range(1, STEPS + 1):
    student.train(), teacher.train()
    rows = torch.randint(0, len(x), (128,))
    some = labelled[torch.randint(0, len(labelled), (32,))]
    supervised = F.cross_entropy(student(noisy(x[some])), y[some])
    with torch.no_grad():
        target = teacher(noisy(x[rows])).softmax(1)
    consistency = F.mse_loss(student(noisy(x[rows])).softmax(1), target)
    loss = supervised + 40 * min(step / 250, 1.0) ** 2 * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(teacher, student, step)
    if step % 100 == 0:
        print(
            f"step {step} supervised {supervised.item():.3f} consistency {consistency.item():.4f} "
            f"val accuracy student {accuracy(student, x_val, y_val):.3f} "
            f"teacher {accuracy(teacher, x_val, y_val):.3f}"
        )
