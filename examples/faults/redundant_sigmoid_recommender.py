"""A recommender's scores go through a sigmoid before the loss that has one inside.

The sigmoid, which puts the scores between 0 and 1, was kept when BCELoss became BCEWithLogitsLoss.
The loss sees 0.5 to 0.73 for every pair of user and film and cannot say "no": it stalls above 0.5.
The place is the loss (the model's last layer).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss", "model", "mlp*", "score*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

USERS, FILMS, TASTES = 250, 180, 4
NEGATIVES = 1
conf = {
    "factors": 8,
    "hidden": 16,
    "lr": 5e-3,
    "weight_decay": 1e-4,
    "batch_size": 256,
    "epochs": 15,
}


def watched(rng):
    """Who watched what: users and films have tastes, and a pair that fits is likely watched."""
    user_taste = rng.dirichlet(np.full(TASTES, 0.3), USERS)
    film_taste = rng.dirichlet(np.full(TASTES, 0.3), FILMS)
    fit = user_taste @ film_taste.T
    return rng.random(fit.shape) < 1 / (1 + np.exp(-9 * (fit - 0.5)))


class PairScorer(nn.Module):
    def __init__(self, factors, hidden, squash):
        super().__init__()
        self.user = nn.Embedding(USERS, factors)
        self.film = nn.Embedding(FILMS, factors)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.film.weight, std=0.3)
        self.mlp = nn.Sequential(nn.Linear(3 * factors, hidden), nn.ReLU())
        self.score = nn.Linear(hidden, 1)
        self.squash = nn.Sigmoid() if squash else nn.Identity()

    def forward(self, user, film):
        u, f = self.user(user), self.film(film)
        both = self.mlp(torch.cat([u, f, u * f], dim=1))
        return self.squash(self.score(both)).squeeze(1)


def with_negatives(positives, seen, rng):
    """Each watched pair, and some pairs of the same user that were not watched."""
    users = np.repeat(positives[:, 0], NEGATIVES)
    films = rng.integers(0, FILMS, len(users))
    unseen = ~seen[users, films]
    pairs = np.concatenate([positives, np.stack([users, films], 1)[unseen]])
    labels = np.concatenate([np.ones(len(positives)), np.zeros(unseen.sum())])
    order = rng.permutation(len(pairs))
    return torch.from_numpy(pairs[order]), torch.from_numpy(labels[order]).float()


@torch.no_grad()
def report(model, pairs, labels):
    model.eval()
    score = model(pairs[:, 0], pairs[:, 1])
    loss = nn.functional.binary_cross_entropy_with_logits(score, labels).item()
    rank = score.argsort().argsort().double() + 1
    n_pos = labels.sum().item()
    auc = (rank[labels > 0].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * (len(labels) - n_pos))
    wanted = (torch.sigmoid(score) > 0.5).float()
    return loss, auc.item(), (wanted == labels).float().mean().item()


rng = np.random.default_rng(900 + seed)
matrix = watched(rng)
positives = rng.permutation(np.argwhere(matrix))
cut = int(0.85 * len(positives))
train_positives, held_out = positives[:cut], positives[cut:]
val_pairs, val_labels = with_negatives(held_out, matrix, rng)

model = PairScorer(conf["factors"], conf["hidden"], squash=not healthy)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=conf["lr"], weight_decay=conf["weight_decay"])
print(f"{len(train_positives)} watched pairs to train on, {len(held_out)} held out")
for epoch in range(1, conf["epochs"] + 1):
    model.train()
    pairs, labels = with_negatives(train_positives, matrix, rng)
    epoch_loss = 0.0
    for start in range(0, len(pairs), conf["batch_size"]):
        batch = pairs[start : start + conf["batch_size"]]
        target = labels[start : start + conf["batch_size"]]
        model.zero_grad()
        loss = loss_fn(model(batch[:, 0], batch[:, 1]), target)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(batch)
    val_loss, auc, accuracy = report(model, val_pairs, val_labels)
    print(
        f"[Epoch {epoch:03d}] loss={epoch_loss / len(pairs):.4f} "
        f"val_loss={val_loss:.4f} AUC={auc:.4f} acc={accuracy:.4f}"
    )
