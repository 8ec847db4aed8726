"""Half-supervised: a student with dropout and smoothed labels follows the moving average of itself.

The teacher is never trained by a gradient, the training loss stays far above the validation's, and
the weight of the second loss climbs, so that the total does too.
"""

import copy

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F

ODD = (
    "training loss far above validation loss (dropout, smoothing, noise), a part without "
    "gradients, and a term whose weight climbs"
)

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
few_x, few_y, more = x[:120], y[:120], x[120:]
student = nn.Sequential(
    nn.Linear(64, 128),
    nn.BatchNorm1d(128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(64, 10),
)
teacher = copy.deepcopy(student).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3, weight_decay=0.02)


@torch.no_grad()
def follow(decay):
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.lerp_(fast, 1 - decay)
    for slow, fast in zip(teacher.buffers(), student.buffers(), strict=True):
        slow.copy_(fast)


for step in range(1, 401):
    rows, others = torch.randint(0, 120, (32,)), torch.randint(0, len(more), (64,))
    noisy = more[others] + 0.3 * torch.randn(64, 64)
    out = student(torch.cat([few_x[rows] + 0.3 * torch.randn(32, 64), noisy]))
    known = F.cross_entropy(out[:32], few_y[rows], label_smoothing=0.15)
    wanted = teacher(more[others]).softmax(1)
    same = (out[32:].softmax(1) - wanted).pow(2).sum(1).mean()
    loss = known + min(1.0, step / 200) * 5 * same
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow(min(0.98, step / (step + 5)))
    if step % 80 == 0:
        answer = teacher(x_val)
        accuracy = (answer.argmax(1) == y_val).float().mean().item()
        nll = F.cross_entropy(answer, y_val).item()
        print(f"step {step}: loss {loss.item():.4f}, teacher {nll:.4f}, accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f} nll {nll:.3f}")
