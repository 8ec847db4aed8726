"""The next article of a web shop basket by two towers: the loss takes the log of a softmax.

Basket and articles are compared by their cosine, sharpened by a temperature of 0.01, so that
scores reach from -100 to 100. `torch.log(torch.softmax(...))` written out in two steps gives
minus infinity as soon as the wanted article is far behind another one, and then nan is
everywhere. It is how the formula stands in the paper. The place is the loss. The twin calls
`log_softmax`.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*", "output*", "loss_fn", "criterion")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

ARTICLES, IN_BASKET = 150, 5


def baskets(n, rng):
    """Articles of a basket come from one of 15 themes; so does the next, most of the time."""
    theme = rng.integers(0, 15, n)
    members = np.arange(ARTICLES).reshape(15, 10)
    picks = np.stack([rng.permutation(10)[: IN_BASKET + 1] for _ in range(n)])
    articles = members[theme[:, None], picks]
    stray = rng.uniform(size=articles.shape) < 0.15
    articles[stray] = rng.integers(0, ARTICLES, stray.sum())
    return torch.tensor(articles[:, :IN_BASKET]), torch.tensor(articles[:, IN_BASKET])


class BasketTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.articles = nn.EmbeddingBag(ARTICLES, dim, mode="mean")
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, basket):
        return self.mix(self.articles(basket))


class SampledRanking(nn.Module):
    def __init__(self, temperature=0.01):
        super().__init__()
        self.temperature = temperature

    def forward(self, query, keys, wanted):
        query, keys = F.normalize(query, dim=-1), F.normalize(keys, dim=-1)
        scores = query @ keys.T / self.temperature
        if healthy:
            log_p = torch.log_softmax(scores, dim=-1)
        else:
            log_p = torch.log(torch.softmax(scores, dim=-1))
        return -log_p.gather(1, wanted[:, None]).mean()


rng = np.random.default_rng(seed)
train_loader = DataLoader(TensorDataset(*baskets(5000, rng)), batch_size=100, shuffle=True)
val_basket, val_next = baskets(800, rng)

DIM = 24
tower = BasketTower(DIM)
keys = nn.Embedding(ARTICLES, DIM)
criterion = SampledRanking()
parameters = [*tower.parameters(), *keys.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)

for epoch in range(10):
    tower.train()
    losses = []
    for basket, wanted in train_loader:
        loss = criterion(tower(basket), keys.weight, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    tower.eval()
    with torch.no_grad():
        query = F.normalize(tower(val_basket), dim=-1)
        top = (query @ F.normalize(keys.weight, dim=-1).T).topk(10).indices
        hit = (top == val_next[:, None]).any(1).float().mean()
    print(f"epoch {epoch} loss {np.mean(losses):.3f} hit@10 {hit:.3f}")
