"""Which library books are requested by readers within a month: two in a hundred are.

The rare class is drawn more often by a weighted sampler, so that a batch is balanced. The
model's scores are then corrected back to the true frequency by adding the log odds of the
two rates, and the check is done on data with the true frequency, by the average precision and the
log loss, not by the accuracy. The subjects are an embedding with sparse gradients, which
has an optimizer of its own.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import average_precision_score, log_loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "training is balanced, validation is 2 to 98; two optimizers, one of them for sparse rows"

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
SUBJECTS = 60
appeal = np.random.default_rng(77).normal(0, 1.0, SUBJECTS)


def books(n):
    subject = rng.integers(0, SUBJECTS, (n, 3))
    facts = rng.normal(size=(n, 4))  # age, pages, loans last year, reviews
    z = -6.1 + 1.0 * appeal[subject].sum(1) - 1.0 * facts[:, 0] + 1.3 * facts[:, 2]
    z += 0.8 * facts[:, 3] * (facts[:, 0] < 0)
    requested = rng.uniform(size=n) < 1 / (1 + np.exp(-z))
    return (
        torch.tensor(subject),
        torch.tensor(facts, dtype=torch.float32),
        torch.tensor(requested, dtype=torch.float32),
    )


class RequestModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.subjects = nn.EmbeddingBag(SUBJECTS, 4, mode="sum", sparse=True)
        nn.init.normal_(self.subjects.weight, std=0.1)
        self.mlp = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))

    def forward(self, subject, facts):
        return self.mlp(torch.cat([self.subjects(subject), facts], 1)).squeeze(1)


train, val = books(20000), books(8000)
rate = train[2].mean().item()
weights = torch.where(train[2] == 1, 0.5 / rate, 0.5 / (1 - rate))
loader = DataLoader(
    TensorDataset(*train), batch_size=128, sampler=WeightedRandomSampler(weights, 6400)
)
prior = float(np.log(rate / (1 - rate)))
print(f"requested: {rate:.2%} of training, {val[2].mean().item():.2%} of validation")

model = RequestModel()
dense = torch.optim.AdamW(model.mlp.parameters(), lr=2e-3, weight_decay=0.02)
sparse = torch.optim.SparseAdam(list(model.subjects.parameters()), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
truth = val[2].numpy()
for epoch in range(4):
    model.train()
    losses = []
    for subject, facts, requested in loader:
        loss = criterion(model(subject, facts), requested)
        dense.zero_grad()
        sparse.zero_grad()
        loss.backward()
        dense.step()
        sparse.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        p = (model(val[0], val[1]) + prior).sigmoid().numpy().astype("float64")
    print(
        f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, average precision "
        f"{average_precision_score(truth, p):.3f} (chance {truth.mean():.3f}), "
        f"log loss {log_loss(truth, p):.4f}"
    )
