"""A student is distilled from cached teacher logits; the cache was filled in another order than it
is read.

The teacher's logits over the unlabelled transfer set are computed once and kept as one tensor, by
a loader that shuffles; the student's dataset then reads row i of the cache for image i. The place
is the loader (the targets).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class DistillConfig:
    temperature: float = 3.0
    teacher_epochs: int = 12
    student_epochs: int = 30
    batch_size: int = 64
    teacher_lr: float = 1e-3
    student_lr: float = 2e-3


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(48 * 16, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(3, 12)
        self.fc = nn.Linear(12 * 16, 48)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        h = F.relu(self.norm(self.conv(x))).flatten(1)
        return self.out(F.relu(self.fc(h)))


class SoftLabelled(Dataset):
    def __init__(self, images, soft):
        assert len(images) == len(soft)
        self.images, self.soft = images, soft

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.soft[i]


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    hit = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return hit


def kd_loss(student, teacher, t):
    return (
        F.kl_div(F.log_softmax(student / t, 1), F.softmax(teacher / t, 1), reduction="batchmean")
        * t
        * t
    )


def main():
    cfg = DistillConfig()
    x, y, x_val, y_val = images(seed)

    # stage 1: the teacher, with labels
    teacher = Teacher()
    opt = torch.optim.Adam(teacher.parameters(), lr=cfg.teacher_lr)
    labelled = DataLoader(
        TensorDataset(x[:700], y[:700]), cfg.batch_size, shuffle=True, drop_last=True
    )
    for _ in range(cfg.teacher_epochs):
        for xb, yb in labelled:
            loss = F.cross_entropy(teacher(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"teacher val accuracy {accuracy(teacher, x_val, y_val):.4f}")

    # stage 2: cache its logits over everything that we have, labelled or not
    teacher.eval().requires_grad_(False)
    pool = DataLoader(TensorDataset(x), batch_size=256, shuffle=not healthy)
    with torch.no_grad():
        cache = torch.cat([teacher(xb) for (xb,) in pool])

    # stage 3: the student, from the cache only
    student = Student()
    loader = DataLoader(SoftLabelled(x, cache), cfg.batch_size, shuffle=True)
    opt = torch.optim.AdamW(student.parameters(), lr=cfg.student_lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.student_epochs * len(loader))
    for epoch in range(cfg.student_epochs):
        total = 0.0
        for xb, soft in loader:
            loss = kd_loss(student(xb), soft, cfg.temperature)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(
                f"student epoch {epoch + 1} kd {total / len(loader):.4f} val accuracy {accuracy(student, x_val, y_val):.4f}"  # noqa: E501
            )


main()
