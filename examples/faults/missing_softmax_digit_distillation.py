"""Distillation of a digit network with raw student logits in kl_div instead of their log_softmax.

The person knew that the teacher's side takes a softmax and left the student's side as it was.
kl_div expects log-probabilities there: with raw logits it has no lower end, and all logits of the
student grow together while the loss falls far below zero. The place is the loss.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TEMPERATURE, SOFT_SHARE = 3.0, 0.9


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1, stride=2),
            nn.BatchNorm2d(48),
            nn.ReLU(),
        )
        self.out = nn.Linear(48 * 16, 10)

    def forward(self, x):
        return self.out(self.convs(x).flatten(1))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))

    def forward(self, x):
        return self.layers(x)


def distillation_loss(student_logits, teacher_logits, labels):
    student = student_logits / TEMPERATURE
    if healthy:
        student = F.log_softmax(student, dim=1)
    teacher = F.softmax(teacher_logits / TEMPERATURE, dim=1)
    soft = F.kl_div(student, teacher, reduction="batchmean") * TEMPERATURE**2
    return SOFT_SHARE * soft + (1 - SOFT_SHARE) * F.cross_entropy(student_logits, labels)


def batches(x, y, size=32):
    for index in torch.randperm(len(x)).split(size):
        yield x[index], y[index]


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    accuracy = (logits.argmax(1) == y).float().mean().item()
    return accuracy, F.cross_entropy(logits, y).item(), logits.mean().item()


def main():
    bunch = load_digits()
    pictures = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(bunch.target)
    order = torch.randperm(len(labels))
    train, val = order[:1300], order[1300:]
    pictures = (pictures - pictures[train].mean()) / pictures[train].std()
    x, y, x_val, y_val = pictures[train], labels[train], pictures[val], labels[val]

    teacher = Teacher()
    optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(6):
        teacher.train()
        for images, target in batches(x, y):
            loss = F.cross_entropy(teacher(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"teacher: acc {evaluate(teacher, x_val, y_val)[0]:.3f}")

    student = Student()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(20):
        student.train()
        total = 0.0
        for images, target in batches(x, y):
            with torch.no_grad():
                told = teacher(images)
            loss = distillation_loss(student(images), told, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(target)
        accuracy, val_loss, height = evaluate(student, x_val, y_val)
        if epoch % 4 == 3:
            print(
                f"epoch {epoch:2d} loss {total / len(x):9.3f} val acc {accuracy:.3f} "
                f"val cross entropy {val_loss:.3f} mean logit {height:.1f}"
            )


main()
