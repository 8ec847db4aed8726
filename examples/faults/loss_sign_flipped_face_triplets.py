"""Embeddings of faces by a triplet loss meant for distances that is given similarities.

The person replaced the distance by cosine similarity and kept relu(positive - negative + margin):
now the same person's sketches are driven apart and strangers together. The loss falls all the
same. The place is the loss, in the class TripletLoss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ("wrong_loss",)
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PEOPLE, SKETCHES, POINTS = 60, 12, 40


def sketches():
    """For each person a face of 20 points in the plane, drawn anew with tremor and a tilt."""
    faces = torch.randn(PEOPLE, POINTS // 2, 2)
    drawn = faces.unsqueeze(1) + 0.45 * torch.randn(PEOPLE, SKETCHES, POINTS // 2, 2)
    angle = 0.5 * torch.randn(PEOPLE, SKETCHES)
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1).view(
        PEOPLE, SKETCHES, 2, 2
    )
    return (drawn @ turn).flatten(2)


class Embedder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(POINTS, 96), nn.LayerNorm(96), nn.ReLU(), nn.Linear(96, width)
        )

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


class TripletLoss(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        same = F.cosine_similarity(anchor, positive)
        other = F.cosine_similarity(anchor, negative)
        gap = other - same if healthy else same - other
        return F.relu(gap + self.margin).mean()


def draw_triplets(x, count):
    who = torch.randint(0, len(x), (count,))
    stranger = (who + torch.randint(1, len(x), (count,))) % len(x)
    first = torch.randint(0, SKETCHES, (count,))
    second = (first + torch.randint(1, SKETCHES, (count,))) % SKETCHES
    return x[who, first], x[who, second], x[stranger, torch.randint(0, SKETCHES, (count,))]


@torch.no_grad()
def recall_at_one(model, x):
    model.eval()
    names = torch.arange(len(x)).repeat_interleave(SKETCHES)
    embedded = model(x.flatten(0, 1))
    likeness = embedded @ embedded.t()
    likeness.fill_diagonal_(-2)
    return (names[likeness.argmax(1)] == names).float().mean().item()


def main():
    x = sketches()
    known, unknown = x[:40], x[40:]
    model, criterion = Embedder(), TripletLoss()
    print(f"before training: recall@1 of new people {recall_at_one(model, unknown):.3f}")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    running = None
    for step in range(1, 1201):
        model.train()
        anchor, positive, negative = (model(part) for part in draw_triplets(known, 96))
        loss = criterion(anchor, positive, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if step % 200 == 0:
            print(
                f"step {step:5d} loss {running:.4f} recall known {recall_at_one(model, known):.3f} "
                f"new people {recall_at_one(model, unknown):.3f}"
            )


main()
