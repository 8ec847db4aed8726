"""A small student learns from a larger teacher's soft answers on digits, at temperature 4."""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the loss divides logits by 4, takes softmax of the teacher's, is scaled by 16, and half of "
    "the networks get no gradient"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


def cnn(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * width, 10),
    )


def evaluate(model):
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    model.train()
    return nn.functional.cross_entropy(logits, y_val).item(), (
        logits.argmax(1) == y_val
    ).float().mean().item()


teacher, student = cnn(24), cnn(6)
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(8):
    teacher.train()
    for xb, yb in train:
        loss = nn.functional.cross_entropy(teacher(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("teacher: val loss {:.3f} accuracy {:.3f}".format(*evaluate(teacher)))
teacher.eval()

T = 4.0
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(16):
    student.train()
    total = 0.0
    for xb, yb in train:
        with torch.no_grad():
            soft = (teacher(xb) / T).log_softmax(1)
        logits = student(xb)
        distill = nn.functional.kl_div(
            (logits / T).log_softmax(1), soft, reduction="batchmean", log_target=True
        )
        loss = 0.7 * T * T * distill + 0.3 * nn.functional.cross_entropy(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    print(
        "student {:2d}: loss {:.3f} val loss {:.3f} accuracy {:.3f}".format(
            epoch, total, *evaluate(student)
        )
    )
