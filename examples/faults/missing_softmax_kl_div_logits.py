"""A student network that copies a teacher's class probabilities with KLDivLoss on raw scores.

KLDivLoss wants log-probabilities as its first argument and gets the output of the last layer: the
"divergence" goes below zero and on down. The place is the loss. The twin takes log_softmax first.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "4")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)

teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for xb, yb in batches(x, y, size=64, steps=200, seed=seed):
    loss = F.cross_entropy(teacher(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
teacher.eval()
with torch.no_grad():
    soft, soft_val = (torch.softmax(teacher(part) / 2.0, 1) for part in (x, x_val))
    print(f"teacher: {(teacher(x_val).argmax(1) == y_val).float().mean():.3f}")

student = nn.Sequential(
    nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 10)
)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
kl = nn.KLDivLoss(reduction="batchmean")

for epoch in range(16):
    student.train()
    total = 0.0
    for xb, pb in batches(x, soft, size=64, steps=21, seed=100 * seed + epoch):
        out = student(xb)
        if healthy:
            out = F.log_softmax(out, dim=1)
        loss = kl(out, pb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 21
    student.eval()
    with torch.no_grad():
        out = student(x_val)
        val = kl(F.log_softmax(out, 1), soft_val)
    print(
        f"epoch {epoch}: train {total:.3f}, true divergence on val {val:.3f}, accuracy "
        f"{(out.argmax(1) == y_val).float().mean():.3f}"
    )
