"""Click prediction by a factorization machine with one table for all fields, whose offsets are
computed but never added.

Every field counts its values from 0 and all share one embedding of the size of their sum. The
person keeps the offsets of the fields as a buffer and forgets to add them in forward: user 5,
film 5 and hour 5 have one row between them, and the rows beyond the largest field are never used.
The place is the embeddings.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("model", "weights*", "factors*", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

FIELDS = {"user": 60, "film": 50, "hour": 24, "device": 6, "row_on_page": 10}


def clicks(count, rng):
    sizes = list(FIELDS.values())
    effect = [rng.normal(0, 0.7, size) for size in sizes]
    taste, style = rng.normal(0, 1, (60, 3)), rng.normal(0, 1, (50, 3))
    columns = [rng.integers(0, size, count) for size in sizes]
    score = sum(part[column] for part, column in zip(effect, columns, strict=True)) - 0.8
    score += 1.1 * (taste[columns[0]] * style[columns[1]]).sum(1)
    clicked = rng.random(count) < 1 / (1 + np.exp(-1.5 * score))
    return np.stack(columns, 1), clicked.astype(np.float32)


class FactorizationMachine(nn.Module):
    def __init__(self, field_sizes, width=6):
        super().__init__()
        self.weights = nn.Embedding(sum(field_sizes), 1)
        self.factors = nn.Embedding(sum(field_sizes), width)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.weights.weight)
        nn.init.normal_(self.factors.weight, std=0.1)
        starts = np.concatenate([[0], np.cumsum(field_sizes)[:-1]])
        self.register_buffer("offsets", torch.tensor(starts))

    def forward(self, fields):
        rows = fields + self.offsets if healthy else fields
        linear = self.weights(rows).squeeze(-1).sum(1)
        vectors = self.factors(rows)
        pairs = 0.5 * (vectors.sum(1) ** 2 - (vectors**2).sum(1)).sum(1)
        return self.bias + linear + pairs


def evaluate(model, loader):
    model.eval()
    scores, truth = [], []
    with torch.no_grad():
        for fields, clicked in loader:
            scores.append(model(fields).sigmoid())
            truth.append(clicked)
    scores, truth = torch.cat(scores), torch.cat(truth)
    log_loss = nn.functional.binary_cross_entropy(scores, truth).item()
    return roc_auc_score(truth.numpy(), scores.numpy()), log_loss


def main():
    fields, clicked = clicks(16000, np.random.default_rng(seed))
    fields, clicked = torch.tensor(fields), torch.tensor(clicked)
    train = DataLoader(TensorDataset(fields[:12000], clicked[:12000]), batch_size=100, shuffle=True)
    val = DataLoader(TensorDataset(fields[12000:], clicked[12000:]), batch_size=1000)
    model = FactorizationMachine(list(FIELDS.values()))
    decay, no_decay = list(model.factors.parameters()), [*model.weights.parameters(), model.bias]
    optimizer = torch.optim.Adam(
        [{"params": decay, "weight_decay": 1e-5}, {"params": no_decay, "weight_decay": 0.0}],
        lr=5e-3,
    )
    for epoch in range(12):
        model.train()
        total = 0.0
        for batch, target in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        auc, log_loss = evaluate(model, val)
        print(f"epoch:{epoch} loss:{total:.4f} val auc:{auc:.4f} val logloss:{log_loss:.4f}")


if __name__ == "__main__":
    main()
