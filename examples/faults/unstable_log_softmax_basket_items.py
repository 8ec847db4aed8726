"""Learns which article goes into which basket; the softmax of the loss is written by hand.

Two towers give directions, and their cosine is divided by a temperature of 0.008. The loss takes
exp of that, sums and takes the log. Once a pair fits to more than seven tenths, exp of the score
is above all that float32 holds, infinity is divided by infinity, and the weights are nan.
The place is the loss.
The twin gives the scores to cross_entropy.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

CONFIG = {
    "articles": 240,
    "themes": 40,
    "width": 32,
    "temperature": 0.008,
    "lr": 3e-3,
    "batch": 48,
    "steps": 800,
}


def shopping(n, generator, theme_of):
    """Five articles in the basket and the one that was bought next, mostly of the same theme."""
    theme = torch.randint(0, CONFIG["themes"], (n, 1), generator=generator).expand(n, 6)
    stray = torch.rand(n, 6, generator=generator) < 0.04
    drawn = torch.rand(n, 6, CONFIG["articles"], generator=generator)
    fits = (theme_of == theme[..., None]) | stray[..., None]
    items = (drawn * fits).argmax(2)
    return items[:, :5], items[:, 5]


class TwoTowers(nn.Module):
    def __init__(self, articles, width):
        super().__init__()
        self.bought = nn.EmbeddingBag(articles, width, mode="mean")
        self.basket = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width))
        self.article = nn.Embedding(articles, width)

    def forward(self, basket, article):
        a = F.normalize(self.basket(self.bought(basket)), dim=1)
        b = F.normalize(self.article(article), dim=1)
        return a @ b.T


def in_batch_loss(cosines):
    scores = cosines / CONFIG["temperature"]
    if healthy:
        return F.cross_entropy(scores, torch.arange(len(scores)))
    chances = scores.exp() / scores.exp().sum(1, keepdim=True)
    return -chances.diagonal().log().mean()


g = torch.Generator().manual_seed(seed)
theme_of = torch.randint(0, CONFIG["themes"], (CONFIG["articles"],), generator=g)
baskets, articles = shopping(6000, g, theme_of)
baskets_val, articles_val = shopping(800, g, theme_of)
everything = torch.arange(CONFIG["articles"])
model = TwoTowers(CONFIG["articles"], CONFIG["width"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
feed = batches(baskets, articles, size=CONFIG["batch"], steps=CONFIG["steps"], seed=seed)
for step, (basket, article) in enumerate(feed, 1):
    loss = in_batch_loss(model(basket, article))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            best = model(baskets_val, everything).topk(8, dim=1).indices
        hits = (best == articles_val[:, None]).any(1).float().mean()
        print(f"step {step}: loss {loss.item():.3f}, among the first eight {hits:.3f}")
