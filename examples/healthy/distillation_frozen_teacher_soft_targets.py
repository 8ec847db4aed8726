"""A small student learns digits from a larger teacher's softened answers, at a temperature of 4.

The teacher is trained first, then frozen and put into eval mode. The student's loss is a
divergence times T squared; its bottom isn't known beforehand, and half of the modules in memory
get no gradient at all.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

ODD = (
    "a frozen network in eval mode runs in every training step; the loss takes probabilities as "
    "targets and is scaled by 16"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
T = 4.0


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(x_val).argmax(1) == y_val).float().mean().item()


teacher = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(48 * 16, 10),
)
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3, weight_decay=1e-4)
for step, (image, digit) in enumerate(batches(x, y, size=64, steps=240, seed=seed)):
    teacher.train()
    loss = F.cross_entropy(teacher(image), digit)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher: {accuracy(teacher):.3f}")
teacher.eval().requires_grad_(False)

student = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
for step, (image, digit) in enumerate(batches(x, y, size=64, steps=600, seed=seed + 1), 1):
    student.train()
    with torch.no_grad():
        soft = F.softmax(teacher(image) / T, dim=1)
    logits = student(image)
    told = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
    loss = 0.8 * told + 0.2 * F.cross_entropy(logits, digit)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 60 == 0:
        print(
            f"step {step} loss {loss.item():.4f} of it divergence {told.item():.4f} "
            f"student {accuracy(student):.3f}"
        )
