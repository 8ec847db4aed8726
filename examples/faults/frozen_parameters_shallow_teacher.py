"""A mean teacher made with copy.copy: it shares its layers with the student, and freezing it
freezes both.

`copy.copy` of a module copies the dictionary's outside, not the weights. The student's encoder,
never trained, stays random; only the classifier learns. The place is the encoder.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder*", "student*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
labelled = 800  # the other pictures are used without their labels


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(48, 12),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(12, 10)

    def forward(self, pictures):
        return self.classifier(self.encoder(pictures))


student = Student()
teacher_encoder = copy.deepcopy(student.encoder) if healthy else copy.copy(student.encoder)
for p in teacher_encoder.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)


@torch.no_grad()
def follow(momentum=0.95):
    for slow, fast in zip(teacher_encoder.parameters(), student.encoder.parameters(), strict=True):
        slow.lerp_(fast, 1 - momentum)


for step in range(400):
    rows = torch.randint(labelled, (48,))
    others = torch.randint(len(x), (48,))
    shaken = x[others] + 0.2 * torch.randn(48, 1, 8, 8)
    supervised = F.cross_entropy(student(x[rows]), y[rows])
    agree = F.mse_loss(student.encoder(shaken), teacher_encoder(x[others]))
    loss = supervised + 0.1 * min(1.0, step / 100) * agree
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    follow()
    if step % 40 == 39:
        student.eval()
        with torch.no_grad():
            out = student(x_val)
            val = F.cross_entropy(out, y_val).item()
        student.train()
print(
    f"loss {supervised.item():.3f}, validation loss {val:.3f}, "
    f"accuracy {(out.argmax(1) == y_val).float().mean():.3f}"
)
