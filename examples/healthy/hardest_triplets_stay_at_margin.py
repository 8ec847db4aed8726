"""Metric learning with the hardest triplets of each batch: the loss sits near its margin at first
and counts fewer triplets later.

The person sees a loss that is at 0.5, the margin, for long, then hardly moves, and asks whether
the net collapsed. It is a mean over the hardest cases that still hurt; the recall shows the
learning.
"""

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F

ODD = (
    "the loss stays at the margin for half of the steps while recall rises: only the hardest"
    " triplets of each batch are averaged, and only those that still violate the margin"
)
_, seed = arguments(__doc__)

MARGIN = 0.5
CLASSES, PER_CLASS = 8, 8


class EmbeddingNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
        )
        self.fc = nn.Linear(32 * 16, width)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x).flatten(1)), dim=1)


def balanced_batch(labels):
    """Eight digits, eight pictures of each."""
    chosen = torch.randperm(10)[:CLASSES]
    rows = []
    for digit in chosen:
        members = (labels == digit).nonzero().squeeze(1)
        rows.append(members[torch.randperm(len(members))[:PER_CLASS]])
    return torch.cat(rows)


def hardest_triplets(embeddings, labels):
    """Mean violation over anchors whose hardest triplet violates the margin, and their share."""
    similarity = embeddings @ embeddings.T
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    furthest_friend = similarity.masked_fill(~same, 2.0).min(1).values
    nearest_stranger = similarity.masked_fill(same, -2.0).max(1).values
    violation = F.relu(nearest_stranger - furthest_friend + MARGIN)
    active = violation > 0
    return violation.sum() / active.sum().clamp(min=1), active.float().mean().item()


def recall_at_one(model, x, y, x_val, y_val):
    model.eval()
    with torch.no_grad():
        nearest = (model(x_val) @ model(x).T).argmax(1)
    model.train()
    return (y[nearest] == y_val).float().mean().item()


def main():
    x, y, x_val, y_val = images(seed)
    model = EmbeddingNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    print(f"before: recall@1 {recall_at_one(model, x, y, x_val, y_val):.3f}")
    losses, shares = [], []
    for step in range(1, 361):
        rows = balanced_batch(y)
        loss, share = hardest_triplets(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        shares.append(share)
        if step % 40 == 0:
            print(
                f"step {step:3d}: loss {sum(losses) / 40:.3f}, active {sum(shares) / 40:.2f},"
                f" recall@1 {recall_at_one(model, x, y, x_val, y_val):.3f}"
            )
            losses.clear()
            shares.clear()


if __name__ == "__main__":
    main()
