"""A mean teacher on the digits: 150 labelled images, the others pulled towards an averaged teacher.

The teacher is a copy of the student that no optimizer has; it follows as a moving average, and its
predictions are targets without a gradient. It is the teacher that is evaluated.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = "a whole network without gradients and outside the optimizer changes at each step"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
labelled = torch.arange(150)

student = nn.Sequential(
    nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
)
teacher = copy.deepcopy(student).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.05)


def noisy(x):
    return x + 0.2 * torch.randn_like(x)


for step in range(1, 501):
    student.train()
    few = labelled[torch.randperm(150)[:32]]
    many = torch.randperm(len(x))[:96]
    supervised = F.cross_entropy(student(noisy(x[few])), y[few])
    with torch.no_grad():
        target = teacher(noisy(x[many])).softmax(1)
    consistency = F.mse_loss(student(noisy(x[many])).softmax(1), target)
    loss = supervised + min(1.0, step / 200) * 10 * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay = min(0.98, 1 - 1 / (step + 1))
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
            slow.lerp_(fast, 1 - decay)
    if step % 50 == 0:
        with torch.no_grad():
            out = teacher(x_val)
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step}: supervised {supervised.item():.3f}  consistency {consistency.item():.4f}"
            f"  val loss {F.cross_entropy(out, y_val).item():.3f}  accuracy {accuracy:.3f}"
        )
