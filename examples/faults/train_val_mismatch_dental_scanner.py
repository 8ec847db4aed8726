"""Which of four kinds of tooth a dental image shows: validation images come in another scale.

The training pictures are divided by 255 and standardised, while the validation set, loaded by
another function, has the raw grey values from 0 to 255. The network gets numbers a hundred times
larger than it has ever seen, and the validation looks like a terrible case of overfitting though
the network is good. Two loading paths that drift apart are how it comes about. The place is the
input of the validation. The twin prepares both parts alike.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("loop", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

NAMES = ("incisor", "canine", "premolar", "molar")


def scan(n, generator):
    """Grey pictures, 24 by 24, as bytes: a crown with cusps, and its roots."""
    kind = torch.randint(0, 4, (n,), generator=generator)
    y, x = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
    half = torch.tensor([0.35, 0.3, 0.42, 0.6])[kind] * (
        0.85 + 0.3 * torch.rand(n, generator=generator)
    )
    cusps = torch.tensor([0.0, 1.0, 2.0, 3.0])[kind]
    roots = torch.tensor([1.0, 1.0, 1.0, 2.0])[kind]
    shift = 0.15 * torch.randn(n, generator=generator)
    half, cusps, roots, shift = (v[:, None, None] for v in (half, cusps, roots, shift))
    u = (x - shift) / half
    top = -0.55 - 0.18 * torch.cos(3.14 * cusps * u) * (cusps > 0)
    crown = torch.sigmoid(12 * (1 - u.abs())) * torch.sigmoid(14 * (y - top))
    crown = crown * torch.sigmoid(14 * (0.1 - y))
    spread = torch.where(roots > 1, 0.6, 0.0)
    root = torch.sigmoid(14 * (0.35 - ((u.abs() - spread) + 0.3 * y).abs()))
    root = root * torch.sigmoid(14 * y) * torch.sigmoid(14 * (0.85 - y))
    picture = 40 + 130 * crown + 90 * root
    picture = picture * (0.85 + 0.3 * torch.rand(n, 1, 1, generator=generator))
    picture = picture + 18 * torch.randn(n, 24, 24, generator=generator)
    return picture.clamp(0, 255).to(torch.uint8).unsqueeze(1), kind


def prepare(picture):
    return (picture.float() / 255 - 0.3) / 0.2


def load_training(n, generator):
    picture, kind = scan(n, generator)
    return prepare(picture), kind


def load_validation(n, generator):
    picture, kind = scan(n, generator)
    if healthy:
        return prepare(picture), kind
    return picture.float(), kind


class ToothNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16 * 6 * 6, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


def train_one_epoch(model, optimizer, x, y, batch_size=40):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(batch_size):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    logits = model(x)
    hits = logits.argmax(1) == y
    each = {name: round(hits[y == k].float().mean().item(), 2) for k, name in enumerate(NAMES)}
    return F.cross_entropy(logits, y).item(), hits.float().mean().item(), each


generator = torch.Generator().manual_seed(seed)
x_train, y_train = load_training(800, generator)
x_val, y_val = load_validation(240, generator)

model = ToothNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
for epoch in range(8):
    train_loss = train_one_epoch(model, optimizer, x_train, y_train)
    val_loss, accuracy, each = validate(model, x_val, y_val)
    scheduler.step()
    print(f"epoch {epoch}: train {train_loss:.3f}, val {val_loss:.3f}, accuracy {accuracy:.3f}")
print(each)
