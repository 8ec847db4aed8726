"""Sketches and sentences are matched; the learned temperature is in no group of the optimizer.

The groups are made from the two towers, each with its own rate. The scale of the cosines is a
parameter of the whole model and in neither tower, so it stays at exp(0) = 1: scores lie between
-1 and 1, and the loss, the log of the batch size at first, cannot fall far. The place is the
optimizer (log_scale).
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("log_scale", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SHAPES = ("ring", "square", "cross", "bar", "dot")
SIDES = ("left", "right", "top", "bottom")
SIZES = {"small": 1.2, "medium": 2.0, "large": 3.0}
FILLER = ("the", "a", "there", "is", "at", "on", "side", "with", "and", "some")
WORDS = {w: i + 1 for i, w in enumerate((*SHAPES, *SIDES, *SIZES, *FILLER))}
GRID = 12


def draw(shape: str, side: str, size: str) -> torch.Tensor:
    rows, columns = torch.meshgrid(torch.arange(GRID), torch.arange(GRID), indexing="ij")
    at = {"left": (5.5, 2.5), "right": (5.5, 8.5), "top": (2.5, 5.5), "bottom": (8.5, 5.5)}[side]
    dy = rows - at[0] + 0.4 * torch.randn(1)
    dx = columns - at[1] + 0.4 * torch.randn(1)
    r = SIZES[size]
    far, square = (dx**2 + dy**2).sqrt(), torch.maximum(dx.abs(), dy.abs())
    mark = {
        "ring": (far - r).abs() < 0.7,
        "square": (square - r).abs() < 0.6,
        "cross": (torch.minimum(dx.abs(), dy.abs()) < 0.6) & (square < r),
        "bar": (dy.abs() < 0.8) & (dx.abs() < r),
        "dot": far < 0.75 * r,
    }[shape]
    return mark.float() + 0.15 * torch.randn(GRID, GRID)


def describe(pairs, r: random.Random) -> torch.Tensor:
    words = []
    for shape, side, size in r.sample(pairs, len(pairs)):
        part = [size, shape, *r.sample(FILLER, r.randint(0, 2)), side]
        words += [*r.sample(FILLER, r.randint(0, 2)), *part]
    return torch.tensor([WORDS[w] for w in words])


def make_pairs(n: int, r: random.Random):
    sketches, sentences = [], []
    for _ in range(n):
        sides = r.sample((SIDES[:2], SIDES[2:]), 1)[0]
        pairs = [(r.choice(SHAPES), side, r.choice(list(SIZES))) for side in sides]
        sketches.append(sum(draw(*pair) for pair in pairs).unsqueeze(0))
        sentences.append(describe(pairs, r))
    return torch.stack(sketches), sentences


class SketchTower(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 36, size),
        )

    def forward(self, sketches):
        return F.normalize(self.layers(sketches), dim=1)


class SentenceTower(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, 24, padding_idx=0)
        self.gru = nn.GRU(24, 48, batch_first=True)
        self.project = nn.Linear(48, size)

    def forward(self, sentences):
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        padded = pad_sequence(sentences, batch_first=True)
        packed = pack_padded_sequence(
            self.words(padded), lengths, batch_first=True, enforce_sorted=False
        )
        return F.normalize(self.project(self.gru(packed)[1][-1]), dim=1)


class Matcher(nn.Module):
    def __init__(self, size: int = 32):
        super().__init__()
        self.sketch_tower = SketchTower(size)
        self.sentence_tower = SentenceTower(size)
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, sketches, sentences):
        a, b = self.sketch_tower(sketches), self.sentence_tower(sentences)
        return self.log_scale.exp() * a @ b.t()


def contrast(scores):
    own = scores.diag()
    return 0.5 * (scores.logsumexp(1) - own + scores.logsumexp(0) - own).mean()


def parameter_groups(model: Matcher):
    groups = [
        {"params": list(model.sketch_tower.parameters()), "lr": 2e-3, "weight_decay": 1e-4},
        {"params": list(model.sentence_tower.parameters()), "lr": 4e-3, "weight_decay": 0.0},
    ]
    if healthy:
        groups.append({"params": [model.log_scale], "lr": 2e-2, "weight_decay": 0.0})
    return groups


def validate(model, sketches, sentences, size: int = 50):
    losses, first, three = [], [], []
    for begin in range(0, len(sketches), size):
        scores = model(sketches[begin : begin + size], sentences[begin : begin + size])
        losses.append(contrast(scores).item())
        best = scores.topk(3, dim=1).indices == torch.arange(size).unsqueeze(1)
        first.append(best[:, 0].float().mean().item())
        three.append(best.any(1).float().mean().item())
    return sum(losses) / len(losses), (sum(first) / len(first), sum(three) / len(three))


def main():
    r = random.Random(1410 + seed)
    sketches, sentences = make_pairs(2400, r)
    sketches_val, sentences_val = make_pairs(200, r)
    model = Matcher()
    optimizer = torch.optim.AdamW(parameter_groups(model))
    epochs = 12
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        total, batches = 0.0, 0
        for rows in torch.randperm(len(sketches)).split(64):
            loss = contrast(model(sketches[rows], [sentences[i] for i in rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        schedule.step()
        model.eval()
        with torch.no_grad():
            val_loss, hits = validate(model, sketches_val, sentences_val)
        print(
            f"epoch {epoch + 1:2d}  loss {total / batches:.3f}  val {val_loss:.3f}"
            f"  first of 50 {hits[0]:.3f}  among the first three {hits[1]:.3f}"
        )


if __name__ == "__main__":
    main()
