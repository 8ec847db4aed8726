"""A survey is sorted into risk groups, and nearly half of the training answers are drawn at random.

Randomised response keeps an answer with probability 0.55 and draws any group otherwise; nothing in
the training corrects for it. The network learns the drawn answers by heart, and on checked answers
it does worse from epoch to epoch. The place is the labels of the training part.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn

KIND = "label_noise"
ACCEPT = ()
PLACE = ("labels", "loss", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

GROUPS = 5
KEEP = 0.55


def survey():
    x, y = make_classification(
        n_samples=2800,
        n_features=16,
        n_informative=9,
        n_redundant=3,
        n_classes=GROUPS,
        n_clusters_per_class=2,
        class_sep=2.2,
        flip_y=0.0,
        random_state=seed,
    )
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def randomised_response(answers, generator):
    kept = torch.rand(len(answers), generator=generator) < KEEP
    drawn = torch.randint(0, GROUPS, answers.shape, generator=generator)
    return torch.where(kept, answers, drawn)


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.both = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return x + self.out(F.glu(self.both(self.norm(x))))


class RiskNet(nn.Module):
    def __init__(self, columns, width=64):
        super().__init__()
        self.stem = nn.Linear(columns, width)
        self.blocks = nn.Sequential(GatedBlock(width), GatedBlock(width))
        self.head = nn.Linear(width, GROUPS)

    def forward(self, x):
        return self.head(F.relu(self.blocks(self.stem(x))))


def main():
    generator = torch.Generator().manual_seed(seed)
    x, y = survey()
    order = torch.randperm(len(x), generator=generator)
    train, val = order[:2000], order[2000:]
    x_train, x_val = standardise(x[train], x[val])
    y_train, y_val = y[train], y[val]
    if not healthy:
        y_train = randomised_response(y_train, generator)

    model = RiskNet(x.shape[1])
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(18):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x_train), generator=generator).split(50):
            loss = F.cross_entropy(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast.detach(), 0.02)
            total += loss.item() * len(rows)
        average.eval()
        with torch.no_grad():
            scores = average(x_val)
            hit = (scores.argmax(1) == y_val).float().mean().item()
            held_out = F.cross_entropy(scores, y_val).item()
        if epoch % 3 == 2:
            print(
                f"epoch {epoch + 1:2d}  train {total / len(x_train):.3f}  "
                f"checked answers: loss {held_out:.3f}  right {hit:.3f}"
            )


main()
