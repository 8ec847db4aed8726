"""A teacher is trained, then a student learns its softened outputs (KL) and the labels."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "two trainings in one script, softmax before a loss, a frozen model in evaluation mode"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for pixels, labels in batches(x, y, size=64, steps=120, seed=seed):
    loss = F.cross_entropy(teacher(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

teacher.eval()
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
warmth = 3.0
for pixels, labels in batches(x, y, size=64, steps=220, seed=seed):
    with torch.no_grad():
        soft = F.softmax(teacher(pixels) / warmth, dim=1)
    scores = student(pixels)
    far = F.kl_div(F.log_softmax(scores / warmth, dim=1), soft, reduction="batchmean")
    loss = 0.3 * F.cross_entropy(scores, labels) + 0.7 * warmth**2 * far
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(student(x_val).argmax(1) == y_val).float().mean():.3f}")
