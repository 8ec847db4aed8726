"""Embeddings of digit images for search: triplet loss with semi-hard mining within the batch.

Batches are drawn as so many classes times so many pictures. The mean of the loss is over triplets
that violate the margin only, and so hardly falls while there are fewer and fewer. The metric is
recall at 1: does the nearest picture of the gallery show the same digit?
"""

import random
from collections import defaultdict

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

ODD = (
    "the loss hovers near the margin because only violating triplets count; embeddings have norm 1"
)

_, seed = arguments(__doc__)


class ClassBatches(Sampler):
    """Batches of `classes` digits with `each` pictures."""

    def __init__(self, labels, classes=6, each=6, batches=36):
        self.rows = defaultdict(list)
        for i, label in enumerate(labels.tolist()):
            self.rows[label].append(i)
        self.classes, self.each, self.batches = classes, each, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            chosen = random.sample(sorted(self.rows), self.classes)
            yield [i for c in chosen for i in random.sample(self.rows[c], self.each)]


class Embedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.project = nn.Linear(128, dim)

    def forward(self, x):
        return F.normalize(self.project(self.features(x).flatten(1)), dim=1)


def triplet_loss(z, labels, margin=0.2):
    distance = torch.cdist(z, z)
    same = labels[:, None] == labels[None, :]
    anchor, positive = torch.where(same & ~torch.eye(len(z), dtype=torch.bool))
    reach = distance[anchor, positive]
    to_others = distance[anchor].masked_fill(same[anchor], float("inf"))
    semi = to_others.masked_fill(to_others <= reach[:, None], float("inf")).amin(1)
    hardest = to_others.amin(1)
    negative = torch.where(torch.isfinite(semi), semi, hardest)
    losses = F.relu(reach - negative + margin)
    return losses.sum() / (losses > 0).sum().clamp(min=1)


@torch.no_grad()
def recall_at_1(model, gallery, gallery_y, query, query_y):
    model.eval()
    nearest = torch.cdist(model(query), model(gallery)).argmin(1)
    return (gallery_y[nearest] == query_y).float().mean().item()


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_sampler=ClassBatches(y))
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
print(f"before: recall at 1 {recall_at_1(model, x, y, x_val, y_val):.3f}")
for epoch in range(8):
    model.train()
    total = 0.0
    for image, label in loader:
        loss = triplet_loss(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    print(f"epoch {epoch} loss {total:.3f} recall {recall_at_1(model, x, y, x_val, y_val):.3f}")
