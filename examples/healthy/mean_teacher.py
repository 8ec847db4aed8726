"""A student with few labels and a teacher that is the average of the student's weights."""

import copy

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "a model without gradients that is called under no_grad in training mode in each step"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
student = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
teacher = copy.deepcopy(student)
teacher.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
labelled = 300
for step, (pixels,) in enumerate(batches(x, size=48, steps=250, seed=seed)):
    rows = torch.randint(labelled, (16,))
    with torch.no_grad():
        expected = F.softmax(teacher(pixels + 0.1 * torch.randn_like(pixels)), dim=1)
    guess = F.softmax(student(pixels + 0.1 * torch.randn_like(pixels)), dim=1)
    agreement = F.mse_loss(guess, expected)
    loss = F.cross_entropy(student(x[rows]), y[rows]) + min(1.0, step / 80) * agreement
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(teacher.parameters(), student.parameters(), strict=True):
            mine.lerp_(theirs, 0.02)
teacher.eval()
print(f"loss {loss.item():.3f}, accuracy {(teacher(x_val).argmax(1) == y_val).float().mean():.3f}")
