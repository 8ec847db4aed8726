"""Trains a digit encoder towards a fixed classifier whose ten directions form a simplex."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "the last layer is a constant without gradient, since the best directions are known "
    "beforehand (neural collapse); features are of length one and logits lie between -12 and 12"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

CLASSES, WIDTH, SCALE = 10, 32, 12.0
x, y, x_val, y_val = images(seed)


def simplex():
    basis, _ = torch.linalg.qr(torch.randn(WIDTH, CLASSES))
    centred = torch.eye(CLASSES) - torch.full((CLASSES, CLASSES), 1 / CLASSES)
    return (CLASSES / (CLASSES - 1)) ** 0.5 * basis @ centred


class SimplexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(128, WIDTH),
        )
        self.register_buffer("directions", simplex())

    def forward(self, pictures):
        return SCALE * nn.functional.normalize(self.encoder(pictures), dim=1) @ self.directions


net = SimplexNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(
    net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
)
STEPS = 420
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
for step, (pictures, labels) in enumerate(batches(x, y, size=64, steps=STEPS, seed=seed)):
    net.train()
    loss = criterion(net(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 70 == 69:
        net.eval()
        with torch.no_grad():
            logits = net(x_val)
            val_loss = criterion(logits, y_val).item()
            accuracy = (logits.argmax(1) == y_val).float().mean().item()
        print(f"step {step + 1}  loss {loss.item():.3f}  val {val_loss:.3f}  {accuracy:.3f}")

with torch.no_grad():
    along = (logits / SCALE).gather(1, y_val[:, None]).mean().item()
print(
    f"validation accuracy {accuracy:.3f} (guessing 0.100); mean cosine to the own direction "
    f"{along:.3f}, between two directions {-1 / (CLASSES - 1):.3f}"
)
