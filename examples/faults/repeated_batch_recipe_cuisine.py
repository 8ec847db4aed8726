"""The cuisine of a recipe by its ingredients: `get_batch` draws the same recipes each time.

The generator for the row numbers is made anew, with the seed of the configuration, within the
function that draws a batch, "so that the run can be repeated". So every step sees the same 48
recipes; they are known by heart after a while, and the other thousands are never looked at. The
place is the loader, here the function `get_batch` (the input of the loop). The twin makes the
generator once.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*", "loop", "get_batch")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "seed": 1234 + seed,
    "ingredients": 180,
    "cuisines": 12,
    "batch_size": 48,
    "max_iters": 400,
    "eval_interval": 80,
    "learning_rate": 2e-3,
    "embed": 32,
}

# ----- recipes: each cuisine has its favourites, staples are everywhere
rng = np.random.default_rng(seed)
taste = rng.gamma(0.25, 1.0, (config["cuisines"], config["ingredients"])) + 0.02
taste[:, :10] += 1.5
taste /= taste.sum(1, keepdims=True)


def cook(n):
    cuisine = rng.integers(0, config["cuisines"], n)
    bags = np.zeros((n, config["ingredients"]), dtype=np.float32)
    for row, c in enumerate(cuisine):
        used = rng.choice(config["ingredients"], rng.integers(4, 10), replace=False, p=taste[c])
        bags[row, used] = 1.0
    return torch.from_numpy(bags), torch.from_numpy(cuisine)


splits = {"train": cook(3000), "val": cook(800)}

draws = np.random.default_rng(config["seed"])


def get_batch():
    bags, cuisine = splits["train"]
    g = draws if healthy else np.random.default_rng(config["seed"])
    rows = torch.from_numpy(g.integers(0, len(bags), config["batch_size"]))
    return bags[rows], cuisine[rows]


# ----- parameters by hand, functional style
def weight(rows, columns):
    w = torch.randn(rows, columns) / rows**0.5
    return w.requires_grad_()


params = {
    "embed": weight(config["ingredients"], config["embed"]),
    "w1": weight(config["embed"], 64),
    "b1": torch.zeros(64, requires_grad=True),
    "w2": weight(64, config["cuisines"]),
    "b2": torch.zeros(config["cuisines"], requires_grad=True),
}


def forward(p, bags):
    h = bags @ p["embed"] / bags.sum(1, keepdim=True).sqrt()
    h = F.gelu(h @ p["w1"] + p["b1"])
    return h @ p["w2"] + p["b2"]


@torch.no_grad()
def estimate():
    bags, cuisine = splits["val"]
    logits = forward(params, bags)
    return F.cross_entropy(logits, cuisine).item(), (logits.argmax(1) == cuisine).float().mean()


optimizer = torch.optim.AdamW(params.values(), lr=config["learning_rate"], weight_decay=0.05)
for it in range(1, config["max_iters"] + 1):
    xb, yb = get_batch()
    loss = F.cross_entropy(forward(params, xb), yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % config["eval_interval"] == 0:
        val_loss, accuracy = estimate()
        print(f"iter {it}: train {loss.item():.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
