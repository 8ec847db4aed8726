"""Caries on small dental images: a broad network learns its few pictures by heart.

160 pictures, which the dentists judged with some mistakes, meet a convolutional network that has
hundreds of thousands of weights and thirty epochs of time, without any regularisation. The
training loss goes to zero while the validation loss climbs most of the run. So it goes when a
model from a big data set is taken over for a small one. The place is the training as a whole:
`features` and `classifier`, or the loop. The twin trains with shifted and mirrored pictures,
dropout and weight decay, and stops when the validation no longer improves.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("features", "classifier", "model", "loop", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

SIZE = 20
EPOCHS = 30


def draw_teeth(count, seed):
    """Teeth as bright ovals on a dark ground; half of them with a dim, soft spot."""
    g = torch.Generator().manual_seed(700 + seed)
    grid = torch.linspace(-1, 1, SIZE)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")

    def uniform(low, high):
        return (low + (high - low) * torch.rand(count, 1, 1, generator=g)).expand(-1, SIZE, SIZE)

    cx, cy, rx, ry = uniform(-0.2, 0.2), uniform(-0.2, 0.2), uniform(0.5, 0.7), uniform(0.6, 0.9)
    inside = 1 - ((xx - cx) / rx) ** 2 - ((yy - cy) / ry) ** 2
    image = torch.sigmoid(6 * inside) * uniform(0.7, 1.1)
    ill = torch.rand(count, generator=g) < 0.5
    angle, away = uniform(0, 2 * math.pi), uniform(0.1, 0.6)
    sx, sy = cx + rx * away * angle.cos(), cy + ry * away * angle.sin()
    spot = torch.exp(-((xx - sx) ** 2 + (yy - sy) ** 2) / 0.05)
    image = image - 0.9 * spot * ill[:, None, None]
    image = image + 0.15 * torch.randn(count, SIZE, SIZE, generator=g)
    judged = ill ^ (torch.rand(count, generator=g) < 0.1)
    return image.unsqueeze(1), judged.long()


class Radiographs(Dataset):
    def __init__(self, images, labels, augment=False):
        self.images = (images - 0.5) / 0.4
        self.labels = labels
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.augment:
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
            if torch.rand(()) < 0.5:
                image = image.flip(-2)
            dx, dy = torch.randint(-1, 2, (2,)).tolist()
            image = image.roll((dy, dx), (-2, -1))
        return image, self.labels[i]


class CariesNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32 * 5 * 5, 256),
            nn.ReLU(),
            *([nn.Dropout(dropout)] if dropout else []),
            nn.Linear(256, 2),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


images, labels = draw_teeth(560, seed)
train_set = Radiographs(images[:160], labels[:160], augment=healthy)
val_set = Radiographs(images[160:], labels[160:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)

model = CariesNet(dropout=0.4 if healthy else 0.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05 if healthy else 0.0)
patience = 12 if healthy else EPOCHS
best, best_state, waited = float("inf"), None, 0

for epoch in range(1, EPOCHS + 1):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    with torch.no_grad():
        logits, truth = zip(*[(model(x), y) for x, y in val_loader], strict=False)
    logits, truth = torch.cat(logits), torch.cat(truth)
    val_loss = F.cross_entropy(logits, truth).item()
    accuracy = (logits.argmax(1) == truth).float().mean().item()
    if epoch % 10 == 0:
        print(f"{epoch:3d}: train {train_loss:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
    if val_loss < best:
        best, waited, final = val_loss, 0, (val_loss, accuracy)
        best_state = copy.deepcopy(model.state_dict())
    else:
        waited += 1
        if waited >= patience:
            model.load_state_dict(best_state)
            print(f"stopped after epoch {epoch}")
            break
    if patience == EPOCHS:
        final = (val_loss, accuracy)
print(f"model handed over: val loss {final[0]:.3f}, accuracy {final[1]:.3f}")
