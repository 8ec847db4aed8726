"""A mean teacher: few labelled waves, many without label, and a teacher that is an average."""

import copy

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn

ODD = "half of the parameters (the teacher's) are in no optimizer and never get a gradient"


class MeanTeacher(nn.Module):
    def __init__(self, decay=0.97):
        super().__init__()
        self.student = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(16, 24, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
            nn.Linear(24, 3),
        )
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self):
        for old, new in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            old.lerp_(new, 1 - self.decay)


_, seed = arguments(__doc__)
x, y = waves(seed, n=2000)
x = x.transpose(1, 2)
x_val, y_val = x[1600:], y[1600:]
x_label, y_label, x_more = x[:200], y[:200], x[200:1600]
model = MeanTeacher()
optimizer = torch.optim.Adam(model.student.parameters(), lr=3e-3)
for step in range(300):
    rows = torch.randperm(len(x_label))[:32]
    loss = F.cross_entropy(model.student(x_label[rows]), y_label[rows])
    more = x_more[torch.randint(0, len(x_more), (64,))]
    with torch.no_grad():
        believed = torch.softmax(model.teacher(more), dim=1)
    seen = torch.softmax(model.student(more + 0.1 * torch.randn_like(more)), dim=1)
    loss = loss + min(1.0, step / 100) * F.mse_loss(seen, believed)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.follow()
    if step % 50 == 49:
        with torch.no_grad():
            out = model.teacher(x_val)
            val_loss = F.cross_entropy(out, y_val)
            accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, teacher's accuracy {accuracy:.3f}")
