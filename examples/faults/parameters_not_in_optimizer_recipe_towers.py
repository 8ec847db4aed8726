"""Matches cooks with recipes by two towers; only the cooks' tower is given to the optimizer.

The model was one module first. When it was split in two for serving, the line that builds the
optimizer was carried over for the first of them. The place is the recipes' tower.
The twin chains the parameters of both.
"""

from itertools import chain

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("recipe_tower", "recipe_tower.0", "recipe_tower.weight", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
COOKS, RECIPES, TASTES = 400, 250, 12
g = torch.Generator().manual_seed(11 + seed)
of_cook = torch.randint(0, TASTES, (COOKS,), generator=g)
of_recipe = torch.randint(0, TASTES, (RECIPES,), generator=g)


def cooked(n):
    cook = torch.randint(0, COOKS, (n,), generator=g)
    fits = (of_recipe[None] == of_cook[cook][:, None]).float() + 0.004
    return cook, torch.multinomial(fits, 1, generator=g).squeeze(1)


def tower(n, width=48, out=16):
    return nn.Sequential(nn.Embedding(n, width), nn.ReLU(), nn.Linear(width, out))


cook_tower, recipe_tower = tower(COOKS), tower(RECIPES)
if healthy:
    optimizer = torch.optim.Adam(chain(cook_tower.parameters(), recipe_tower.parameters()), 5e-3)
else:
    optimizer = torch.optim.Adam(cook_tower.parameters(), 5e-3)
cook, recipe = cooked(6000)
cook_val, recipe_val = cooked(800)


def recall(k=20):
    with torch.no_grad():
        score = F.normalize(cook_tower(cook_val)) @ F.normalize(recipe_tower(
            torch.arange(RECIPES))).T  # fmt: skip
    return (score.topk(k).indices == recipe_val[:, None]).any(1).float().mean().item()


for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(len(cook)).split(100):
        left = F.normalize(cook_tower(cook[rows]))
        right = F.normalize(recipe_tower(recipe[rows]))
        logits = 8 * left @ right.T
        same = recipe[rows][:, None] == recipe[rows][None]
        logits = logits.masked_fill(same & ~torch.eye(len(rows), dtype=torch.bool), -1e4)
        loss = F.cross_entropy(logits, torch.arange(len(rows)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 60:.3f} recall@20 {recall():.3f}")
