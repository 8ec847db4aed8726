"""A big teacher is trained on digits, then a small student learns from its soft answers."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "the student's KL loss is tiny and multiplied by T^2; the teacher is frozen and in eval mode"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
teacher = nn.Sequential(
    nn.Linear(64, 160),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(160, 160),
    nn.ReLU(),
    nn.Linear(160, 10),
)
student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))


def accuracy(net):
    net.eval()
    with torch.no_grad():
        result = (net(x_val).argmax(1) == y_val).float().mean().item()
    net.train()
    return result


optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-3, weight_decay=0.01)
for pixels, label in batches(x, y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(teacher(pixels), label)
    loss.backward()
    optimizer.step()
taught = accuracy(teacher)

teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
T, alpha = 4.0, 0.9
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
for pixels, label in batches(x, y, size=64, steps=400, seed=seed + 1):
    with torch.no_grad():
        soft = F.softmax(teacher(pixels) / T, dim=1)
    out = student(pixels)
    kd = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean") * T * T
    loss = alpha * kd + (1 - alpha) * F.cross_entropy(out, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, teacher {taught:.3f}, student {accuracy(student):.3f}")
