"""A mean teacher of digits with few labels: its consistency loss rises, it has no gradient.

The weight of the consistency term is ramped up from zero, and student and teacher can only differ
once they say something. The teacher is the moving average of the student and is in no optimizer, on
purpose. Nothing is wrong.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

ODD = (
    "the consistency loss rises from zero and half of the parameters are in no optimizer: "
    "a ramp-up, and a teacher that is a moving average of the student"
)

LABELLED = 300


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


def jitter(images):
    """A shift by at most one pixel, and noise."""
    padded = F.pad(images, (1, 1, 1, 1), value=images.min().item())
    down, right = torch.randint(0, 3, (2,)).tolist()
    moved = padded[:, :, down : down + 8, right : right + 8]
    return moved + 0.2 * torch.randn_like(moved)


@torch.no_grad()
def follow(teacher, student, keep):
    for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
        old.mul_(keep).add_(new, alpha=1 - keep)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    _, seed = arguments(__doc__)
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(bunch.target)
    x, x_val, y, y_val = train_test_split(
        images, labels, test_size=450, stratify=labels, random_state=seed
    )
    mean, std = x.mean(), x.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    x_labelled, y_labelled, x_unlabelled = x[:LABELLED], y[:LABELLED], x[LABELLED:]

    student = DigitNet()
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    steps, ramp, top_weight = 600, 250, 8.0
    sums = {"class": 0.0, "consistency": 0.0}
    for step in range(1, steps + 1):
        student.train()
        teacher.train()
        rows = torch.randint(0, LABELLED, (32,))
        free = torch.randint(0, len(x_unlabelled), (64,))
        class_loss = F.cross_entropy(student(jitter(x_labelled[rows])), y_labelled[rows])
        says = student(jitter(x_unlabelled[free])).softmax(1)
        with torch.no_grad():
            taught = teacher(jitter(x_unlabelled[free])).softmax(1)
        weight = top_weight * math.exp(-5 * (1 - min(1.0, step / ramp)) ** 2)
        consistency = weight * F.mse_loss(says, taught)
        optimizer.zero_grad()
        (class_loss + consistency).backward()
        optimizer.step()
        follow(teacher, student, keep=min(0.99, 1 - 1 / (step + 1)))
        sums["class"] += class_loss.item()
        sums["consistency"] += consistency.item()
        if step % 60 == 0:
            print(
                f"step {step}: class loss {sums['class'] / 60:.4f}, "
                f"consistency {sums['consistency'] / 60:.5f}, "
                f"student {accuracy(student, x_val, y_val):.4f}, "
                f"teacher {accuracy(teacher, x_val, y_val):.4f}"
            )
            sums = dict.fromkeys(sums, 0.0)


if __name__ == "__main__":
    main()
