"""Digits by sharpness-aware minimisation: two forward and two backward passes for each step.

It looks odd because the weights are moved up the gradient in between, moved back, and the first
gradients are thrown away. It is sound: that is the method (SAM, rho 0.05); the step is made by
the second gradient at the first weights.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "weights moved up the gradient and back; the first gradients are thrown away"
_, seed = arguments(__doc__)

RHO = 0.05
x_train, y_train, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3),
            nn.ReLU(),
        )
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(24 * 2 * 2, 10)

    def forward(self, x):
        return self.fc(self.dropout(self.conv(x).flatten(1)))


model = DigitNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)


def climb():
    """Goes to the worst point near by and returns how to come back."""
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    moves = []
    with torch.no_grad():
        for p in model.parameters():
            move = RHO * p.grad / (norm + 1e-12)
            p.add_(move)
            moves.append(move)
    return moves


def validate():
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for x, y in val_loader:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            right += (out.argmax(1) == y).sum().item()
    return loss / len(y_val), right / len(y_val)


for epoch in range(1, 11):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        moves = climb()

        optimizer.zero_grad()
        criterion(model(x), y).backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)
        optimizer.step()
        running += loss.item()
    val_loss, val_acc = validate()
    print(
        f"epoch {epoch}: train {running / len(train_loader):.4f} "
        f"val {val_loss:.4f} acc {val_acc:.4f}"
    )
