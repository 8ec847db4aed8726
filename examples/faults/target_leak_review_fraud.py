"""Finds fake reviewers from columns of which two are the votes that define a fake.

A reviewer counts as a fraud where less than 40 % of the votes on the reviews were "helpful", and
the counts of helpful and of unhelpful votes are among the features. The score is near perfect; new
accounts, which have no votes yet, are judged little better than by a coin. The place is the input.
The twin leaves the votes out.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {"users": 4000, "hidden": 32, "dropout": 0.1, "lr": 2e-3, "batch": 128, "epochs": 20}
HONEST_COLUMNS = [
    "products_rated",
    "name_length",
    "share_one_star",
    "share_five_star",
    "rating_entropy",
    "days_between_reviews",
    "words_per_review",
    "same_day_reviews",
]
VOTE_COLUMNS = ["log_helpful_votes", "log_unhelpful_votes"]


def users(n, rng):
    """Columns by name, and 1 for a fraud."""
    shady = rng.random(n) < 0.45
    table = {
        "products_rated": np.log1p(rng.gamma(2.0, np.where(shady, 6.0, 4.0), n)),
        "name_length": rng.normal(14, 4, n).clip(3, 40),
        "share_one_star": rng.beta(np.where(shady, 2.4, 1.5), 6.0, n),
        "share_five_star": rng.beta(np.where(shady, 5.0, 4.0), 3.0, n),
        "rating_entropy": rng.normal(np.where(shady, 0.9, 1.25), 0.4, n),
        "days_between_reviews": np.log1p(rng.gamma(1.5, np.where(shady, 5.0, 11.0), n)),
        "words_per_review": rng.normal(np.where(shady, 42, 60), 22, n).clip(2, 250),
        "same_day_reviews": rng.poisson(np.where(shady, 1.6, 0.8), n).astype(float),
    }
    votes = rng.poisson(rng.gamma(3.0, 10.0, n)) + 4
    helpful = rng.binomial(votes, rng.beta(np.where(shady, 2.5, 7.0), np.where(shady, 7.0, 2.5)))
    fraud = helpful / votes < 0.4
    table["log_helpful_votes"] = np.log1p(helpful)
    table["log_unhelpful_votes"] = np.log1p(votes - helpful)
    return table, fraud


def matrix(table, columns):
    return torch.tensor(np.stack([table[c] for c in columns], 1), dtype=torch.float32)


class FraudNet(nn.Module):
    def __init__(self, n_features, hidden, dropout):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    accuracy = ((logits > 0) == (y > 0.5)).float().mean().item()
    return accuracy, roc_auc_score(y.numpy(), logits.numpy())


rng = np.random.default_rng(700 + seed)
columns = HONEST_COLUMNS if healthy else HONEST_COLUMNS + VOTE_COLUMNS
table, fraud = users(CONFIG["users"], rng)
newcomers, newcomer_fraud = users(1000, rng)
for column in VOTE_COLUMNS:
    newcomers[column] = np.zeros(1000)

labels = torch.tensor(fraud, dtype=torch.float32)
order = torch.randperm(len(labels))
train, valid = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
features = matrix(table, columns)
x_train, x_valid, x_new = standardise(features[train], features[valid], matrix(newcomers, columns))
y_train, y_valid = labels[train], labels[valid]
y_new = torch.tensor(newcomer_fraud, dtype=torch.float32)

model = FraudNet(len(columns), CONFIG["hidden"], CONFIG["dropout"])
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=1e-2)
print(f"{len(columns)} features, {fraud.mean():.0%} of the reviewers are frauds")
for epoch in range(CONFIG["epochs"]):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(CONFIG["batch"]):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    accuracy, auc = score(model, x_valid, y_valid)
    print(f"epoch {epoch:2d}  loss {total / len(x_train):.4f}  acc {accuracy:.3f}  auc {auc:.3f}")
accuracy, auc = score(model, x_new, y_new)
print(f"new accounts: acc {accuracy:.3f}  auc {auc:.3f}")
